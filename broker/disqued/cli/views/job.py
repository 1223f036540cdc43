"""`disque job ID`: a job on all nodes, and how it ended if only its record is left."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from dataclasses import dataclass

from disqued.cli.arguments import Parser
from disqued.cli.endpoint import endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.units import moment
from disqued.cli.views.columns import Column, body_text
from disqued.cli.views.everynode import STYLES, UNKNOWN, EveryNode, Known
from disqued.cli.views.log import COLUMNS as LOG_COLUMNS
from disqued.cli.views.table import print_rows, table_options
from disqued.client import JobDetails, LogEntry, NoSuchJob, ResponseError

SHORT = 40
"""So many characters of bodies and results are shown on a terminal."""


@dataclass(frozen=True, slots=True)
class Described:
    """A job, and the number of entries of its progress log."""

    id: str
    known: Known
    log: int

    @property
    def ended_ms(self) -> int | None:
        """When it ended, in unix milliseconds."""
        return None if self.known.fate is None else self.known.fate.ended_ms

    @property
    def claim(self) -> int | None:
        """The claim under which it was acknowledged, or the greatest one that is known."""
        return None if self.known.fate is None else self.known.fate.claim

    @property
    def result(self) -> bytes | None:
        """What its worker gave with the acknowledgement."""
        return None if self.known.fate is None else self.known.fate.result

    @property
    def body(self) -> bytes | None:
        """Its body; None if only the record of the job is left."""
        return next((job.body for job in self.known.shown if job.body is not None), None)

    @property
    def attempts(self) -> int | None:
        """How often it was queued again, at the node where that happened most; None if only its record is left."""
        return max((_again(job) for job in self.known.shown), default=None)


def _again(job: JobDetails) -> int:
    return job.nacks + job.additional_deliveries


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")


COLUMNS: tuple[Column[Described], ...] = (
    Column("id", lambda row: row.id, "ID"),
    Column("state", lambda row: row.known.state, "STATE", style=lambda row: STYLES.get(row.known.state, "")),
    Column("queue", lambda row: row.known.queue, "QUEUE", sparse=True),
    Column("ended_ms", lambda row: row.ended_ms, "ENDED (UTC)", lambda row: moment(row.ended_ms), sparse=True),
    Column("claim", lambda row: row.claim, "CLAIM", sparse=True),
    Column(
        "result", lambda row: _text(row.result), "RESULT", lambda row: body_text(row.result or b"", SHORT), sparse=True
    ),
    Column("nodes", lambda row: len(row.known.shown), "NODES"),
    Column("attempts", lambda row: row.attempts, "AGAIN", sparse=True),
    Column("body", lambda row: _text(row.body), "BODY", lambda row: body_text(row.body or b"", SHORT), sparse=True),
    Column("log", lambda row: row.log),
)


def run(options: argparse.Namespace) -> Exit:
    """Print the job; on a terminal its progress log too."""
    parser = Parser("disque job", None, "Show a job, also one that has ended and left a record.", [endpoint_options()])
    parser.add_argument("job", help="ID of a job")
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    with ExitStack() as stack:
        nodes = EveryNode(options, stack)
        known = nodes.ask(options.job)
        entries = [] if known.state == UNKNOWN else _log(nodes, options.job)
    nodes.warn_of_missing()
    if known.state == UNKNOWN:
        sys.stderr.write(f"No node that answered knows {options.job}: it ended without a record, or never existed.\n")
        return Exit.REFUSED
    print_rows(COLUMNS, [Described(options.job, known, len(entries))], options.form, "")
    if entries and options.form is None and sys.stdout.isatty():
        sys.stdout.write("\n")
        print_rows(LOG_COLUMNS, entries, options.form, "")
    return Exit.OK


def _log(nodes: EveryNode, job_id: str) -> list[LogEntry]:
    """The progress log; empty if the node does not know the command, or may not tell."""
    try:
        return nodes.first.showlog(job_id)
    except (NoSuchJob, ResponseError):
        return []
