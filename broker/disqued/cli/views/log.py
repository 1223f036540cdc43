"""`disque log ID`: the progress log of a job, also of one that ended and left a record."""

from __future__ import annotations

import argparse
import sys

from disqued.cli.arguments import Parser
from disqued.cli.endpoint import endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.units import moment
from disqued.cli.views.client import client_for
from disqued.cli.views.columns import Column
from disqued.cli.views.table import print_rows, table_options
from disqued.client import LogEntry, NoSuchJob

COLUMNS: tuple[Column[LogEntry], ...] = (
    Column("unix_ms", lambda entry: entry.unix_ms, "TIME (UTC)", lambda entry: moment(entry.unix_ms)),
    Column("claim", lambda entry: entry.claim, "CLAIM"),
    Column("seq", lambda entry: entry.seq, "SEQ"),
    Column("entry", lambda entry: entry.entry.decode("utf-8", "replace"), "ENTRY", folds=True),
)


def run(options: argparse.Namespace) -> Exit:
    """Print the entries, by claims and numbers."""
    parser = Parser("disque log", None, "Show the progress log of a job.", [endpoint_options()])
    parser.add_argument("job", help="ID of a job")
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    with client_for(options) as client:
        try:
            entries = client.showlog(options.job)
        except NoSuchJob:
            sys.stderr.write("No node that answers knows the job.\n")
            return Exit.REFUSED
    print_rows(COLUMNS, entries, options.form, "The job has no progress log.")
    return Exit.OK
