"""`disque peek QUEUE`: shows queued jobs with readable bodies, without fetching them."""

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
    """Return the columns; a terminal shows at most `characters` of a body."""
    return (
        Column("id", lambda job: job.id, "ID"),
        Column("queue", lambda job: job.queue),
        Column("body_bytes", lambda job: len(job.body), "SIZE", lambda job: human_bytes(len(job.body))),
        Column("body", lambda job: job.body.decode("utf-8", "surrogateescape"), "BODY",
               lambda job: body_text(job.body, characters), folds=True),
    )  # fmt: skip


def run(options: argparse.Namespace) -> Exit:
    """Print the oldest or newest queued jobs."""
    parser = Parser("disque peek", None, "Show the jobs of a queue without fetching them.", [endpoint_options()])
    parser.add_argument("queue", help="name of the queue")
    parser.add_argument(
        "-n", type=int, default=COUNT, help=f"show the oldest N jobs (default {COUNT}), or the newest N with -N"
    )
    parser.add_argument("--full", action="store_true", help="show complete bodies on a terminal")
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    with client_for(options) as client:
        jobs = client.qpeek(options.queue, options.n)
    longest = max((len(job.body) for job in jobs), default=0)
    characters = 4 * longest if options.full else SHOWN_CHARACTERS  # an escaped byte takes four characters
    print_rows(columns(characters), jobs, options.form, f"No jobs in queue '{printable(options.queue)}'.")
    return Exit.OK
