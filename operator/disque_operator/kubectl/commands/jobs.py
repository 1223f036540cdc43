"""`kubectl disque jobs NAME`: one row for each job, combined from all nodes that hold a copy."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from disque_operator.kubectl.api import Kubectl
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.members import Members, choose_login
from disque_operator.kubectl.output import form, output_option
from disqued.cli.arguments import at_least
from disqued.cli.endpoint import add_login_options
from disqued.cli.units import human_duration
from disqued.cli.views.columns import Column
from disqued.cli.views.jobs import CTIME_PER_S, LIMIT, PAGE_SIZE, STATE_STYLES, STATES
from disqued.cli.views.table import print_rows
from disqued.client import Client, DisqueError, JobDetails, JobFilter, JobId, JobState
from disqued.client.replies import job_details

_STATE_ORDER: tuple[JobState, ...] = ("queued", "active", "wait-repl", "acked")
"""Which copy represents the job: the first of these states."""


@dataclass(frozen=True)
class Row:
    """A job and its copies by pod, sorted by `_STATE_ORDER`."""

    copies: Mapping[str, JobDetails]
    seen_s: float

    @property
    def job(self) -> JobDetails:
        """The copy that represents the job."""
        return next(iter(self.copies.values()))

    @property
    def age_s(self) -> float:
        """Time since the job was created, by the local clock."""
        return max(0.0, round(self.seen_s - self.job.ctime / CTIME_PER_S, 3))

    @property
    def where(self) -> tuple[str, ...]:
        """The state of the job on each node."""
        return tuple(f"{pod}={copy.state}" for pod, copy in self.copies.items())

    @property
    def requeued(self) -> int:
        """How often the job was requeued: NACKs plus additional deliveries, the highest count of any node."""
        return max(copy.nacks + copy.additional_deliveries for copy in self.copies.values())


def _next(row: Row) -> str:
    wait_ms = row.job.next_requeue_within_ms
    return "" if wait_ms is None else human_duration(wait_ms / 1000)


COLUMNS: tuple[Column[Row], ...] = (
    Column("id", lambda row: row.job.id, "ID"),
    Column("queue", lambda row: row.job.queue, "QUEUE", yields=True),
    Column("state", lambda row: row.job.state, "STATE", style=lambda row: STATE_STYLES.get(row.job.state, "")),
    Column("age_s", lambda row: row.age_s, "AGE", lambda row: human_duration(row.age_s)),
    Column("ttl_s", lambda row: row.job.ttl_s),
    Column("retry_s", lambda row: row.job.retry_s),
    Column("delay_s", lambda row: row.job.delay_s),
    Column("next_requeue_within_ms", lambda row: row.job.next_requeue_within_ms, "NEXT", _next),
    Column("requeued", lambda row: row.requeued, "REQUEUED"),
    Column("replicate", lambda row: row.job.replicate),
    Column("copies", lambda row: len(row.copies), "COPIES"),
    Column("where", lambda row: row.where, "WHERE", lambda row: " ".join(row.where), folds=True),
    Column("body_bytes", lambda row: None if row.job.body is None else len(row.job.body)),
)


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", help="name of the cluster")
    parser.add_argument("--queue", help="show only jobs of this queue")
    parser.add_argument(
        "--state", choices=STATES, action="append", default=[], help="show only jobs in this state (repeatable)"
    )
    parser.add_argument(
        "--limit", type=at_least(int, 0), default=LIMIT, help=f"maximum number of jobs (default {LIMIT}; 0: no limit)"
    )
    add_login_options(parser)
    output_option(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """List job IDs on all nodes, then query all nodes for these jobs."""
    limit = chosen.limit or None
    cluster = kubectl.cluster(chosen.name)
    members = Members(kubectl, cluster, choose_login(chosen, kubectl, cluster))
    found = members.query(lambda client: _find(client, chosen.queue, chosen.state, limit))
    wanted = list(interleaved(list(found.values())))
    answers = members.query(lambda client: _show(client, wanted[:limit]))
    rows = [row for row in merged(answers, time.time()) if not chosen.state or row.job.state in chosen.state]
    print_rows(COLUMNS, rows, form(chosen), "No jobs found.")
    if limit and len(wanted) > limit:
        sys.stderr.write(f"only the first {limit} jobs were examined; use --limit 0 for all\n")
    return members.warn_unreachable()


def interleaved(found: Sequence[Sequence[JobId]]) -> Iterator[JobId]:
    """Yield each ID once, taking one of each node in turn."""
    in_turn = chain.from_iterable(zip_longest(*found))
    return iter(dict.fromkeys(each for each in in_turn if each is not None))


def merged(answers: Mapping[str, Sequence[JobDetails]], seen_s: float) -> list[Row]:
    """Combine the replies of the nodes, by pod, into one row for each job."""
    copies: dict[JobId, dict[str, JobDetails]] = {}
    for pod, jobs in answers.items():
        for job in jobs:
            copies.setdefault(job.id, {})[pod] = job
    return [Row(_sorted_by_state(of_pods), seen_s) for of_pods in copies.values()]


def _sorted_by_state(copies: Mapping[str, JobDetails]) -> Mapping[str, JobDetails]:
    return dict(sorted(copies.items(), key=lambda item: (_STATE_ORDER.index(item[1].state), item[0])))


def _find(client: Client, queue: str | None, states: list[JobFilter], limit: int | None) -> list[JobId]:
    """List matching job IDs of a node, at most one more than `limit`, which shows that there are more."""
    found: dict[JobId, None] = {}
    for each in client.jscan(queue=queue, states=states, page_size=PAGE_SIZE):
        found[each] = None
        if limit is not None and len(found) > limit:
            break
    return list(found)


def _show(client: Client, ids: Sequence[JobId]) -> list[JobDetails]:
    """Return the details of these jobs on a node, without those that it does not hold."""
    found = []
    for answer in client.execute_many([("SHOW", each) for each in ids]):
        if isinstance(answer, DisqueError):
            raise answer
        if answer is not None:
            found.append(job_details(answer))
    return found
