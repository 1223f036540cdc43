"""`disque top`: a node at work, refreshed every second or so.

Rates are differences of two samples of QSTAT. On a terminal the busiest queues that fit are shown, for each the age of
the job that waits longest; keys change the order, `q` leaves. Into a pipe, or with `--once`, one snapshot is taken over
one interval.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from disqued.cli.arguments import Parser, at_least
from disqued.cli.endpoint import choose_endpoint, endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.render import Form
from disqued.cli.units import human_bytes, human_duration, human_rate
from disqued.cli.views.client import connected_client
from disqued.cli.views.load import Load, Sample, take_sample, with_oldest
from disqued.cli.views.table import Column, as_lines, as_objects, plain, table_options

INTERVAL_S = 1.0
SHORTEST_S = 0.1


def _from_info(name: str, field: str, title: str, shown: Callable[[int], str] = "{:,}".format) -> Column[Sample]:
    return Column(name, lambda sample: int(sample.info[field]), title, lambda sample: shown(int(sample.info[field])))


FIGURES: tuple[Column[Sample], ...] = (
    Column("node", lambda sample: sample.node, "node"),
    Column("version", lambda sample: sample.info["disque_version"], "version"),
    _from_info("uptime_s", "uptime_in_seconds", "up", human_duration),
    _from_info("registered_jobs", "registered_jobs", "jobs"),
    _from_info("registered_queues", "registered_queues", "queues"),
    _from_info("connected_clients", "connected_clients", "clients"),
    _from_info("blocked_clients", "blocked_clients", "blocked"),
    _from_info("used_memory_bytes", "used_memory", "memory", human_bytes),
    _from_info("commands_per_second", "instantaneous_ops_per_sec", "commands/s", human_rate),
    Column("in_per_second", lambda sample: sample.in_per_s, "in/s", lambda sample: human_rate(sample.in_per_s)),
    Column("out_per_second", lambda sample: sample.out_per_s, "out/s", lambda sample: human_rate(sample.out_per_s)),
)
"""What is said about the node as a whole."""

LONG_S = 60.0
"""A job that waits for so long is worth a colour."""


def _style_of_length(load: Load) -> str:
    return "bold" if load.stats.length else "dim"


def _style_of_age(load: Load) -> str:
    return "yellow" if (load.oldest_s or 0.0) >= LONG_S else ""


def _rate(name: str, title: str, value: Callable[[Load], float], style: str) -> Column[Load]:
    return Column(
        name, value, title, lambda load: human_rate(value(load)), lambda load: style if value(load) else "dim"
    )


COLUMNS: tuple[Column[Load], ...] = (
    Column("queue", lambda load: load.stats.name, "QUEUE", yields=True),
    Column("length", lambda load: load.stats.length, "LENGTH", style=_style_of_length),
    _rate("in_per_second", "IN/S", lambda load: load.in_per_s, "green"),
    _rate("out_per_second", "OUT/S", lambda load: load.out_per_s, "cyan"),
    Column("blocked_clients", lambda load: load.stats.blocked_clients, "BLOCKED"),
    Column("oldest_s", lambda load: load.oldest_s, "OLDEST",
           lambda load: "" if load.oldest_s is None else human_duration(load.oldest_s), _style_of_age),
    Column("idle_s", lambda load: load.stats.idle_s, "IDLE", lambda load: human_duration(load.stats.idle_s)),
    Column("pause", lambda load: load.stats.pause, "PAUSE",
           style=lambda load: "dim" if load.stats.pause == "none" else "yellow"),
)  # fmt: skip

ORDERS: dict[str, tuple[str, Callable[[Load], tuple[float, str]]]] = {
    "r": ("rate", lambda load: (-load.in_per_s - load.out_per_s, load.stats.name)),
    "l": ("length", lambda load: (-load.stats.length, load.stats.name)),
    "b": ("blocked", lambda load: (-load.stats.blocked_clients, load.stats.name)),
    "n": ("name", lambda load: (0, load.stats.name)),
}
"""Key -> name and rule of an order of the rows."""


def run(options: argparse.Namespace) -> Exit:
    """Show the node until `q` or Ctrl-C, or once."""
    parser = Parser("disque top", None, "Shows a node at work.", [endpoint_options()])
    add = parser.add_argument
    add(
        "--interval",
        type=at_least(float, SHORTEST_S),
        default=INTERVAL_S,
        help=f"seconds between samples (default {INTERVAL_S:g})",
    )
    add("--once", action="store_true", help="print one snapshot and exit, as into a pipe")
    add("--sort", choices=[name for name, _ in ORDERS.values()], default="rate", help="order of queues (default: rate)")
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    interval_s: float = options.interval
    key = next(key for key, (name, _) in ORDERS.items() if name == options.sort)
    endpoint = choose_endpoint(options)
    with connected_client(endpoint) as client:
        first = take_sample(client, str(endpoint))
        if options.form is None and not options.once and sys.stdout.isatty() and sys.stdin.isatty():
            from disqued.cli.views.live import watch  # noqa: PLC0415  slow to import, and of no use in a pipe

            with contextlib.suppress(KeyboardInterrupt):
                watch(client, first, interval_s, key)
            return Exit.OK
        time.sleep(interval_s)
        sample = take_sample(client, first.node, first)
        loads = with_oldest(client, ordered(sample.loads, key))
    _print_once(replace(sample, loads=tuple(loads)), options.form)
    return Exit.OK


def ordered(loads: Sequence[Load], key: str) -> list[Load]:
    """The rows in the order that belongs to the key."""
    return sorted(loads, key=ORDERS[key][1])


def _print_once(sample: Sample, form: Form | None) -> None:
    (figures,) = as_objects(FIGURES, [sample])
    if form is Form.JSON:
        sys.stdout.write(json.dumps({**figures, "queues": as_objects(COLUMNS, sample.loads)}) + "\n")
        return
    sys.stdout.writelines(f"{name}\t{plain(value)}\n" for name, value in figures.items())
    sys.stdout.write("\n" + as_lines(COLUMNS, sample.loads))
