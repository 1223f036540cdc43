"""`disque wait ID ...`: waits until jobs have ended, on whichever node they are."""

from __future__ import annotations

import argparse
import sys

from disqued.cli.arguments import Parser, at_least
from disqued.cli.endpoint import endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.views.client import client_for
from disqued.cli.views.columns import Column
from disqued.cli.views.table import print_rows, table_options
from disqued.client import JobEnd

COLUMNS: tuple[Column[tuple[str, JobEnd]], ...] = (
    Column("id", lambda row: row[0], "ID"),
    Column(
        "outcome", lambda row: row[1].outcome, "OUTCOME", style=lambda row: "" if row[1].outcome == "done" else "red"
    ),
    Column("result", lambda row: "" if row[1].result is None else row[1].result.decode("utf-8", "replace"), "RESULT"),
)


def run(options: argparse.Namespace) -> Exit:
    """Print how the jobs ended."""
    parser = Parser("disque wait", None, "Wait until jobs have ended.", [endpoint_options()])
    parser.add_argument("job", nargs="+", help="ID of a job")
    parser.add_argument("--any", action="store_true", help="wait for the first of the jobs only")
    parser.add_argument(
        "--timeout",
        dest="timeout_ms",
        type=at_least(int, 0),
        default=0,
        metavar="MS",
        help="how long to wait (default: without limit)",
    )
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    with client_for(options) as client:
        ends = client.wait(options.job, any=options.any, timeout_ms=options.timeout_ms)
    if not ends:
        sys.stderr.write(f"Not after {options.timeout_ms} ms: the jobs have not ended, or no node knows them.\n")
        return Exit.REFUSED
    print_rows(COLUMNS, list(ends.items()), options.form, "")
    return Exit.OK
