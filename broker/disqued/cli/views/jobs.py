"""`disque jobs`: lists the jobs of a node, in any state."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from disqued.cli.arguments import Parser, at_least
from disqued.cli.endpoint import endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.units import human_duration
from disqued.cli.views.client import client_for
from disqued.cli.views.columns import Column
from disqued.cli.views.table import print_rows, table_options
from disqued.client import Client, JobDetails, JobFilter

STATES: tuple[JobFilter, ...] = ("wait-repl", "active", "queued", "acked", "leased", "delayed", "dead", "held")
STATE_STYLES = {"queued": "cyan", "active": "green", "acked": "dim", "wait-repl": "yellow"}
LIMIT = 100
PAGE_SIZE = 100
CTIME_PER_S = 10**9
"""Units of `ctime` per second: it is Unix milliseconds times a million."""


@dataclass(frozen=True)
class Listed:
    """A job, and the time of the listing in Unix seconds."""

    job: JobDetails
    seen_s: float

    @property
    def age_s(self) -> float:
        """Time since the job was created, according to the clock of this machine."""
        return max(0.0, round(self.seen_s - self.job.ctime / CTIME_PER_S, 3))


def _within(row: Listed) -> str:
    wait_ms = row.job.next_requeue_within_ms
    return "" if wait_ms is None else human_duration(wait_ms / 1000)


def _again(row: Listed) -> str:
    """How often the job was queued again: negative acknowledgements and additional deliveries."""
    return str(row.job.nacks + row.job.additional_deliveries)


COLUMNS: tuple[Column[Listed], ...] = (
    Column("id", lambda row: row.job.id, "ID"),
    Column("queue", lambda row: row.job.queue, "QUEUE", yields=True),
    Column("state", lambda row: row.job.state, "STATE", style=lambda row: STATE_STYLES.get(row.job.state, "")),
    Column("age_s", lambda row: row.age_s, "AGE", lambda row: human_duration(row.age_s)),
    Column("ttl_s", lambda row: row.job.ttl_s),
    Column("retry_s", lambda row: row.job.retry_s),
    Column("delay_s", lambda row: row.job.delay_s),
    Column("next_requeue_within_ms", lambda row: row.job.next_requeue_within_ms, "NEXT", _within),
    Column("nacks", lambda row: row.job.nacks),
    Column("additional_deliveries", lambda row: row.job.additional_deliveries, "AGAIN", _again),
    Column("replicate", lambda row: row.job.replicate),
    Column("nodes_delivered", lambda row: row.job.nodes_delivered),
    Column("nodes_confirmed", lambda row: row.job.nodes_confirmed),
    Column("priority", lambda row: row.job.priority or None, "PRIORITY", sparse=True),
    Column("body_bytes", lambda row: None if row.job.body is None else len(row.job.body)),
    Column("body", lambda row: None if row.job.body is None else row.job.body.decode("utf-8", "surrogateescape")),
)


def run(options: argparse.Namespace) -> Exit:
    """Print the jobs that match the filters, in the order of the node's table."""
    parser = Parser("disque jobs", None, "List the jobs of a node, in no particular order.", [endpoint_options()])
    parser.add_argument("--queue", help="list only jobs of this queue")
    parser.add_argument(
        "--state", choices=STATES, action="append", default=[], help="list only jobs in this state; can be repeated"
    )
    parser.add_argument(
        "--limit", type=at_least(int, 0), default=LIMIT, help=f"maximum number of jobs (default {LIMIT}; 0: all)"
    )
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    limit = options.limit or None
    with client_for(options) as client:
        rows = list(islice(_jobs(client, options.queue, options.state), limit and limit + 1))
    print_rows(COLUMNS, rows[:limit], options.form, "No jobs found.")
    if limit and len(rows) > limit:
        sys.stderr.write(f"More than {limit} jobs found; use --limit 0 to list all.\n")
    return Exit.OK


def _jobs(client: Client, queue: str | None, states: list[JobFilter]) -> Iterator[Listed]:
    """Yield each job once: a scan can return a job twice when the table grows."""
    seen: set[str] = set()
    for job in client.jscan_details(queue=queue, states=states, page_size=PAGE_SIZE):
        if job.id not in seen:
            seen.add(job.id)
            yield Listed(job, time.time())
