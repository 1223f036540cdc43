"""`disque top`: shows the load of a node, refreshed every second.

Rates are differences of two samples of QSTAT. A terminal shows the busiest queues that fit, with the age of the oldest
job in each. Keys change the order, `q` exits. In a pipe, or with `--once`, one snapshot over one interval is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from dataclasses import replace

from disqued.cli.arguments import Parser, at_least
from disqued.cli.endpoint import choose_endpoint, endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.render import Form
from disqued.cli.views.client import connected_client
from disqued.cli.views.columns import as_lines, as_objects, plain
from disqued.cli.views.figures import COLUMNS, FIGURES, ORDERS, ordered
from disqued.cli.views.load import Sample, take_sample, with_oldest
from disqued.cli.views.table import table_options

INTERVAL_S = 1.0
SHORTEST_S = 0.1


def run(options: argparse.Namespace) -> Exit:
    """Show the node until `q` or Ctrl-C, or once."""
    parser = Parser("disque top", None, "Show the load of a node.", [endpoint_options()])
    add = parser.add_argument
    add(
        "--interval",
        type=at_least(float, SHORTEST_S),
        default=INTERVAL_S,
        help=f"seconds between samples (default {INTERVAL_S:g})",
    )
    add("--once", action="store_true", help="print one snapshot and exit (default in a pipe)")
    add(
        "--sort",
        choices=[name for name, _ in ORDERS.values()],
        default="rate",
        help="sort queues by this column (default: rate)",
    )
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    interval_s: float = options.interval
    key = next(key for key, (name, _) in ORDERS.items() if name == options.sort)
    endpoint = choose_endpoint(options)
    with connected_client(endpoint) as client:
        first = take_sample(client, str(endpoint))
        if options.form is None and not options.once and sys.stdout.isatty() and sys.stdin.isatty():
            from disqued.cli.views.live import watch  # noqa: PLC0415  slow to import, and not needed in a pipe

            with contextlib.suppress(KeyboardInterrupt):
                watch(client, first, interval_s, key)
            return Exit.OK
        time.sleep(interval_s)
        sample = take_sample(client, first.node, first)
        loads = with_oldest(client, ordered(sample.loads, key))
    _print_once(replace(sample, loads=tuple(loads)), options.form)
    return Exit.OK


def _print_once(sample: Sample, form: Form | None) -> None:
    (figures,) = as_objects(FIGURES, [sample])
    if form is Form.JSON:
        sys.stdout.write(json.dumps({**figures, "queues": as_objects(COLUMNS, sample.loads)}) + "\n")
        return
    sys.stdout.writelines(f"{name}\t{plain(value)}\n" for name, value in figures.items())
    sys.stdout.write("\n" + as_lines(COLUMNS, sample.loads))
