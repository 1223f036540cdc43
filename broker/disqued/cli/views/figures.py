"""The figures that `disque top` shows of the node and of each queue, and the orders of the queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from disqued.cli.units import human_bytes, human_duration, human_rate
from disqued.cli.views.columns import Column
from disqued.cli.views.load import Load, Sample


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
"""The figures of the node."""

LONG_S = 60.0
"""Age from which the oldest job is highlighted."""


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
    Column("limited", lambda load: load.stats.limited, "LIMITED",
           lambda load: "" if load.stats.limited == "no" else load.stats.limited, lambda _: "yellow", sparse=True),
)  # fmt: skip

ORDERS: dict[str, tuple[str, Callable[[Load], tuple[float, str]]]] = {
    "r": ("rate", lambda load: (-load.in_per_s - load.out_per_s, load.stats.name)),
    "l": ("length", lambda load: (-load.stats.length, load.stats.name)),
    "b": ("blocked", lambda load: (-load.stats.blocked_clients, load.stats.name)),
    "n": ("name", lambda load: (0, load.stats.name)),
}
"""Key -> name and sort key of an order of the rows."""


def ordered(loads: Sequence[Load], key: str) -> list[Load]:
    """Return the rows in the order of the key."""
    return sorted(loads, key=ORDERS[key][1])
