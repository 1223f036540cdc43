"""`disque count QUEUE`: counts the jobs of a queue over all nodes of the cluster."""

from __future__ import annotations

import argparse
import sys

from disqued.cli.arguments import Parser, at_least
from disqued.cli.endpoint import endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.views.client import client_for
from disqued.cli.views.columns import Column
from disqued.cli.views.table import print_rows, table_options
from disqued.client import QueueCount

TIMEOUT_MS = 5000

COLUMNS: tuple[Column[QueueCount], ...] = (
    Column("queued", lambda row: row.queued, "QUEUED"),
    Column("leased", lambda row: row.leased, "LEASED"),
    Column("delayed", lambda row: row.delayed, "DELAYED"),
    Column("held", lambda row: row.held, "HELD"),
    Column("dead", lambda row: row.dead, "DEAD", style=lambda row: "red" if row.dead else ""),
    Column("nodes_answered", lambda row: row.nodes_answered),
    Column("nodes_known", lambda row: row.nodes_known),
    Column("records", lambda row: row.records, "RECORDS"),
)


def warn_of_missing(answered: int, known: int) -> None:
    """Say on standard error that nodes are missing in the figures."""
    if answered < known:
        sys.stderr.write(f"{known - answered} of {known} nodes did not answer; their jobs are not counted.\n")


def run(options: argparse.Namespace) -> Exit:
    """Print the counts."""
    parser = Parser("disque count", None, "Count the jobs of a queue on all nodes.", [endpoint_options()])
    parser.add_argument("queue", help="name of the queue")
    parser.add_argument(
        "--timeout",
        dest="timeout_ms",
        type=at_least(int, 1),
        default=TIMEOUT_MS,
        metavar="MS",
        help=f"how long to wait for the nodes (default {TIMEOUT_MS})",
    )
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    with client_for(options) as client:
        counted = client.qcount(options.queue, timeout_ms=options.timeout_ms)
    print_rows(COLUMNS, [counted], options.form, "")
    warn_of_missing(counted.nodes_answered, counted.nodes_known)
    return Exit.OK
