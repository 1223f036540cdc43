"""`disque dead [QUEUE]`: counts the dead letters of the cluster by queue and reason, or lists them with `--show`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from disqued.cli.arguments import Parser, at_least
from disqued.cli.connection import CommandRefusedError, ConnectionFailedError, ConnectionLostError
from disqued.cli.endpoint import choose_endpoint, endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.units import human_duration
from disqued.cli.views.client import connected_client
from disqued.cli.views.columns import Column
from disqued.cli.views.table import print_rows, table_options
from disqued.client import Client, JobDetails

LIMIT = 100
PAGE_SIZE = 100


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter, and when the listing began, in Unix milliseconds."""

    job: JobDetails
    seen_ms: int

    @property
    def dead_s(self) -> float:
        """How long the job has been a dead letter, according to the clock of this machine."""
        return max(0.0, (self.seen_ms - (self.job.dead_since_ms or self.seen_ms)) / 1000)


@dataclass(slots=True)
class Group:
    """The dead letters of one queue that have the same reason."""

    queue: str
    reason: str
    jobs: int = 0
    origins: set[str] = field(default_factory=set)
    oldest_s: float = 0.0

    def add(self, letter: Letter) -> None:
        """Count a dead letter."""
        self.jobs += 1
        self.origins.add(letter.job.origin_queue or "")
        self.oldest_s = max(self.oldest_s, letter.dead_s)


GROUPS: tuple[Column[Group], ...] = (
    Column("queue", lambda row: row.queue, "QUEUE"),
    Column("jobs", lambda row: row.jobs, "JOBS", style=lambda _: "bold"),
    Column("oldest_s", lambda row: row.oldest_s, "OLDEST", lambda row: human_duration(row.oldest_s)),
    Column("from", lambda row: tuple(sorted(row.origins)), "FROM"),
    Column("reason", lambda row: row.reason, "REASON", yields=True),
)
LETTERS: tuple[Column[Letter], ...] = (
    Column("id", lambda row: row.job.id, "ID"),
    Column("queue", lambda row: row.job.queue),
    Column("dead_s", lambda row: row.dead_s, "DEAD FOR", lambda row: human_duration(row.dead_s)),
    Column("attempts", lambda row: row.job.attempts_before, "ATTEMPTS"),
    Column("from", lambda row: row.job.origin_queue, "FROM"),
    Column("first_id", lambda row: row.job.origin_id),
    Column("ttl_s", lambda row: row.job.ttl_s),
    Column("body_bytes", lambda row: None if row.job.body is None else len(row.job.body)),
    Column("body", lambda row: None if row.job.body is None else row.job.body.decode("utf-8", "surrogateescape")),
    Column("reason", lambda row: row.job.reason, "REASON", yields=True),
)


def run(options: argparse.Namespace) -> Exit:
    """Print the dead letters of all nodes that can be reached."""
    parser = Parser("disque dead", None, "Count or list the dead letters of the cluster.", [endpoint_options()])
    parser.add_argument("queue", nargs="?", help="only those in this queue, or that failed in it")
    parser.add_argument("--show", action="store_true", help="list the dead letters instead of counting them")
    parser.add_argument(
        "--limit", type=at_least(int, 0), default=LIMIT, help=f"with --show: at most so many (default {LIMIT}; 0: all)"
    )
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    found = _Letters(options, int(time.time() * 1000))
    if not options.show:
        groups = grouped(found)
        print_rows(GROUPS, groups, options.form, "No dead letters.")
    else:
        letters = sorted(found, key=lambda letter: (letter.job.dead_since_ms or 0, letter.job.id))
        limit = options.limit or len(letters)
        print_rows(LETTERS, letters[:limit], options.form, "No dead letters.")
        if len(letters) > limit:
            sys.stderr.write(f"{len(letters)} dead letters found; use --limit 0 to list all.\n")
    for address in found.missing:
        sys.stderr.write(f"{address} does not answer; its dead letters are missing.\n")
    return Exit.OK


def grouped(letters: Iterable[Letter]) -> list[Group]:
    """Count dead letters by queue and reason, the most frequent first."""
    groups: dict[tuple[str, str], Group] = {}
    for letter in letters:
        key = (letter.job.queue or "", letter.job.reason or "")
        groups.setdefault(key, Group(*key)).add(letter)
    return sorted(groups.values(), key=lambda group: (-group.jobs, group.queue, group.reason))


class _Letters:
    """The dead letters of all nodes, each once; `missing` are the addresses of nodes that could not be asked.

    All have the time at which the listing began: with a time for each, the ages of letters from two nodes
    would not be in the order in which the jobs died.
    """

    def __init__(self, options: argparse.Namespace, now_ms: int) -> None:
        self._endpoint = choose_endpoint(options)
        self._now_ms = now_ms
        self._queue: str | None = options.queue
        self._seen: set[str] = set()
        self.missing: list[str] = []

    def __iter__(self) -> Iterator[Letter]:
        with connected_client(self._endpoint) as client:
            hello = client.hello()
            yield from self._at(client)
        for node in hello.nodes:
            if node.id == hello.node_id:
                continue
            at = self._endpoint.at(node.host, node.port)
            try:
                with connected_client(at) as client:
                    yield from self._at(client)
            except (ConnectionFailedError, ConnectionLostError, CommandRefusedError):
                self.missing.append(str(at))

    def _at(self, client: Client) -> Iterator[Letter]:
        """Those of one node: a job is queued on one node, unless it moves during the listing."""
        for job in client.jscan_details(states=["dead"], page_size=PAGE_SIZE):
            wanted = self._queue is None or self._queue in {job.queue, job.origin_queue}
            if job.dead_since_ms is not None and wanted and job.id not in self._seen:
                self._seen.add(job.id)
                yield Letter(job, self._now_ms)
