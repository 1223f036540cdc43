"""`disque peek QUEUE`: the jobs that wait in a queue, with bodies that can be read, without taking them."""

from __future__ import annotations

import argparse

from disqued.cli.arguments import Parser
from disqued.cli.endpoint import endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.units import human_bytes
from disqued.cli.views.client import client_for
from disqued.cli.views.columns import Column, body_text, printable
from disqued.cli.views.table import print_rows, table_options
from disqued.client import Job

COUNT = 10
SHOWN_CHARACTERS = 400


def columns(characters: int) -> tuple[Column[Job], ...]:
    """The columns; a terminal shows at most so many characters of a body."""
    return (
        Column("id", lambda job: job.id, "ID"),
        Column("queue", lambda job: job.queue),
        Column("body_bytes", lambda job: len(job.body), "SIZE", lambda job: human_bytes(len(job.body))),
        Column("body", lambda job: job.body.decode("utf-8", "surrogateescape"), "BODY",
               lambda job: body_text(job.body, characters), folds=True),
    )  # fmt: skip


def run(options: argparse.Namespace) -> Exit:
    """Print the oldest or newest waiting jobs."""
    parser = Parser("disque peek", None, "Shows waiting jobs of a queue without taking them.", [endpoint_options()])
    parser.add_argument("queue", help="name of the queue")
    parser.add_argument("-n", type=int, default=COUNT, help=f"how many of the oldest (default {COUNT}); -N: the newest")
    parser.add_argument("--full", action="store_true", help="show bodies to their end on a terminal")
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    with client_for(options) as client:
        jobs = client.qpeek(options.queue, options.n)
    longest = max((len(job.body) for job in jobs), default=0)
    characters = 4 * longest if options.full else SHOWN_CHARACTERS  # an escaped byte takes four
    print_rows(columns(characters), jobs, options.form, f"No job waits in '{printable(options.queue)}'.")
    return Exit.OK
