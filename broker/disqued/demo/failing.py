"""Jobs that fail every time, among jobs that do not: dead letters, the reason, and how they are redriven and done.

The mails have an address each. The worker cannot read the bad ones. After `LIMIT` attempts, such a job moves to the
dead-letter queue; the other jobs do not wait for it. Then the worker is repaired, and the dead letters are redriven.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from disqued.client import Client, DisqueError, Job, JobDetails
from disqued.demo.cluster import BrokerNode, Cluster
from disqued.demo.producer import COPIES
from disqued.demo.workers import WorkFailedError

QUEUE = "demo:mails"
DEAD = f"{QUEUE}.dead"
GOOD = 37
BAD = ("berta.example", "carl(at)example", "dora")
JOBS = GOOD + len(BAD)
LIMIT = 3
BACKOFF = "50 500"
"""The wait after the first attempt and the longest one, in milliseconds."""
RETRY_S = 10
FETCH_TIMEOUT_MS = 200
DEADLINE_S = 30.0
LEFT = "emil"
"""The address of the job that stays a dead letter, to be seen in the console."""


@dataclass(slots=True)
class FailingJobs:
    """The scene. `done` are the addresses whose mails were sent, by a worker on the second node."""

    cluster: Cluster
    done: set[str] = field(default_factory=set)
    is_repaired: bool = False

    def fail(self) -> list[JobDetails]:
        """Add all jobs and work on them until the bad ones are dead letters, which are returned.

        Raises:
            WorkFailedError: the jobs were not done in time.
        """
        with _errors():
            with Client((self.cluster.nodes[0].address,)) as client:
                client.qconf_set(QUEUE, {"limit": LIMIT, "backoff": BACKOFF})
                self._add(client, [f"reader-{number}@example.com" for number in range(GOOD)])
                self._add(client, list(BAD))
            self._work(len(BAD), GOOD)
            return [job for _, job in self.dead_letters()]

    def redrive(self) -> None:
        """Repair the worker, move the dead letters back, and work until all jobs are done.

        Raises:
            WorkFailedError: the jobs were not done in time.
        """
        self.is_repaired = True
        with _errors():
            with Client((self.cluster.nodes[0].address,)) as client:
                client.redrive(DEAD)
            self._work(0, JOBS)
            self.is_repaired = False

    def leave_one(self) -> str:
        """Add a job that becomes a dead letter and stays one. Return the address of the page that shows it.

        Raises:
            WorkFailedError: it did not become one in time.
        """
        with _errors():
            with Client((self.cluster.nodes[0].address,)) as client:
                self._add(client, [LEFT])
            self._work(1, JOBS)
            return next(node.console_page(DEAD) for node, _ in self.dead_letters())

    def _add(self, client: Client, addresses: list[str]) -> None:
        for result in client.add_many(QUEUE, addresses, retry_s=RETRY_S, replicate=COPIES):
            if isinstance(result, DisqueError):
                raise result

    def _work(self, dead: int, done: int) -> None:
        """Work until there are so many dead letters, and so many jobs were done."""
        deadline_s = time.monotonic() + DEADLINE_S
        with Client((self.cluster.nodes[1].address,)) as client:
            while len(self.done) < done or self._count_dead() != dead:
                if time.monotonic() > deadline_s:
                    raise WorkFailedError(
                        f"{len(self.done)} of {done} mails were sent, and there are {self._count_dead()} dead letters "
                        f"instead of {dead}, after {DEADLINE_S:g} s"
                    )
                for job in client.get(QUEUE, count=8, timeout_ms=FETCH_TIMEOUT_MS):
                    self._do(client, job)

    def _do(self, client: Client, job: Job) -> None:
        address = job.body.decode()
        try:
            self._send(address)
        except ValueError as error:
            client.nack(job.id, reason=f"{type(error).__name__}: {error}")
        else:
            client.ack(job.id)
            self.done.add(address)

    def _send(self, address: str) -> None:
        if "@" not in address and not self.is_repaired:
            raise ValueError("the address has no @")

    def _count_dead(self) -> int:
        """How many dead letters wait on all nodes."""
        return sum(int(node.process.ask(f"QLEN {DEAD}")) for node in self.cluster.nodes)

    def dead_letters(self) -> Iterator[tuple[BrokerNode, JobDetails]]:
        """Yield each dead letter with the node where it waits."""
        for node in self.cluster.nodes:
            with Client((node.address,)) as client:
                for job in client.qpeek(DEAD, 100):
                    details = client.show(job.id)
                    if details is not None:
                        yield node, details


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except DisqueError as error:
        raise WorkFailedError(f"the jobs that fail: {error}") from error
