"""Poison jobs among good ones: producers and consumers of the Python client at real nodes, and the account of each job.

    with PoisonLoad(cluster.nodes, "retry_s", 5) as load:
        ...  # faults
        load.stop_adding()
        letters = load.settle(cluster)

Every tenth job is poison: its handler raises, so that it fails until its queue has enough, or rejects it at once. The
others are good. Dead letters stay in their queue until `drain`, so all of them can be looked at together.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import quantiles
from types import TracebackType
from typing import Final, NamedTuple, Self

from disqued.client import Backoff, Client, DisqueError, Job, Reject
from disqued.testing.account import JobAccount
from disqued.testing.processes import ProcessFailedError
from support.cluster import RealCluster, RealNode
from support.nodeclient import TIMEOUT_S

QUEUE: Final = "work"
DEAD_QUEUE: Final = "work.dead"
LIMIT: Final = 3
FAILING: Final = b"failing"
REJECTED: Final = b"rejected"
GOOD: Final = b"good"
WHY_REJECTED: Final = "there is no such address"
PAUSE_S: Final = 0.01
ADD_TIMEOUT_MS: Final = 500
SETTLING_S: Final = 60.0
ONCE: Final = Backoff(attempts=1)


class PoisonError(Exception):
    """What a handler raises each time it gets a job that fails."""


class Letter(NamedTuple):
    """A dead letter, as a client gets it and SHOW describes it."""

    id: str
    body: bytes
    origin_id: str | None
    origin_queue: str | None
    reason: str | None
    attempts: int


def is_poison(body: bytes) -> bool:
    """Whether a job never succeeds."""
    return not body.startswith(GOOD)


def number_of(body: bytes) -> int:
    """The number of the producer that added a job."""
    return int(body.split()[1].partition(b":")[0])


def reason_of(body: bytes) -> str:
    """The reason that the dead letter of a poison job has if a worker gave it."""
    return WHY_REJECTED if body.startswith(REJECTED) else f"PoisonError: {body.decode()}"


@dataclass
class Account:
    """What the clients of all nodes were told. Bodies identify jobs; times are of the monotonic clock."""

    jobs: JobAccount[bytes] = field(default_factory=JobAccount)
    ids: dict[bytes, str] = field(default_factory=dict)
    taken_at: dict[str, RealNode] = field(default_factory=dict)
    """By ID, the node that delivered a job last."""
    sent_s: dict[bytes, float] = field(default_factory=dict)
    """When the ADDJOB of each job was sent."""
    handled_s: dict[bytes, float] = field(default_factory=dict)
    """When the handler of each good job was done for the first time."""
    refused: Counter[str] = field(default_factory=Counter)
    """The errors of producers, by class."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def added(self, *, poison: bool) -> set[bytes]:
        """The poison jobs, or the good ones, whose ADDJOB was answered."""
        with self.lock:
            return {body for body in self.jobs.added if is_poison(body) == poison}

    def undone(self, bodies: set[bytes]) -> set[bytes]:
        """The jobs of a set that no handler has done yet."""
        with self.lock:
            return bodies - self.handled_s.keys()

    def handle(self, job: Job) -> None:
        """Work on a job, as a consumer's handler."""
        with self.lock:
            self.jobs.delivered[job.body] += 1
        if job.body.startswith(FAILING):
            raise PoisonError(job.body.decode())
        if job.body.startswith(REJECTED):
            raise Reject(WHY_REJECTED)
        with self.lock:
            self.handled_s.setdefault(job.body, time.monotonic())

    def latencies(self) -> dict[str, str]:
        """How long it took from the ADDJOB of good jobs until they were done for the first time."""
        took_ms = [1000 * (self.handled_s[body] - self.sent_s[body]) for body in self.added(poison=False)]
        found = quantiles(took_ms, n=100, method="inclusive")
        return {"p50": f"{found[49]:.1f} ms", "p99": f"{found[98]:.1f} ms", "longest": f"{max(took_ms):.1f} ms"}


class _Producer(threading.Thread):
    """Adds jobs at one node; those that are refused or not answered are not added again."""

    def __init__(self, number: int, node: RealNode, account: Account, retry_s: int) -> None:
        super().__init__(daemon=True)
        self._number = number
        self._client = Client([node.address], discover=False, backoff=ONCE)
        self._account = account
        self._retry_s = retry_s
        self.stopping = threading.Event()

    def run(self) -> None:
        with self._client:
            for attempt in range(1 << 62):
                if self.stopping.wait(PAUSE_S):
                    return
                self._add(attempt)

    def _add(self, attempt: int) -> None:
        sort = {3: FAILING, 13: REJECTED}.get(attempt % 20, GOOD)
        body = b"%b %d:%d" % (sort, self._number, attempt)
        account = self._account
        account.jobs.attempted.add(body)
        account.sent_s[body] = time.monotonic()
        copies = 1 if attempt % 7 == 0 else 2  # so that a node that is cut off has some as well
        try:
            job_id = self._client.add(QUEUE, body, replicate=copies, retry_s=self._retry_s, timeout_ms=ADD_TIMEOUT_MS)
        except DisqueError as error:
            with account.lock:
                account.refused[type(error).__name__] += 1
            return
        with account.lock:
            account.ids[body] = job_id
            account.jobs.add(body, time.monotonic())


class PoisonLoad:
    """A producer and a consumer at each node; `discover`: consumers may use other nodes when theirs is gone."""

    def __init__(self, nodes: Sequence[RealNode], *, retry_s: int, discover: bool = True) -> None:
        self.account = Account()
        self._nodes = list(nodes)
        self._producers = [_Producer(number, node, self.account, retry_s) for number, node in enumerate(nodes)]
        self._discover = discover
        self._opened = contextlib.ExitStack()

    def consume(self, node: RealNode, queue: str, handler: Callable[[Job], object], concurrency: int = 4) -> None:
        """Start a consumer at a node; it stops with the load."""
        patient = Client([node.address], discover=self._discover, timeout_s=TIMEOUT_S)  # jobs in lost replies come late
        client = self._opened.enter_context(patient)

        def handle(job: Job) -> object:
            self.account.taken_at[job.id] = node
            return handler(job)

        self._opened.enter_context(client.consumer(queue, handle, concurrency=concurrency))

    def stop_adding(self) -> None:
        """End the producers."""
        for producer in self._producers:
            producer.stopping.set()
        for producer in self._producers:
            producer.join()

    def wait_for_more(self, cluster: RealCluster, jobs: int) -> None:
        """Wait until so many good jobs of each producer are done that were added after this call."""
        before = self.account.added(poison=False)

        def are_done() -> bool:
            added = self.account.added(poison=False) - before
            done = Counter(number_of(body) for body in added - self.account.undone(added))
            return all(done[number] >= jobs for number in range(len(self._producers)))

        cluster.wait_until(are_done, f"{jobs} more good jobs of each producer are done")

    def settle(self, cluster: RealCluster, queue: str = QUEUE) -> None:
        """Wait until no node has a job of the queue any more, not even a copy: all are done, or are dead letters."""
        try:
            cluster.wait_until(lambda: not jobs_of(cluster, queue), f"no node has a job of {queue}", SETTLING_S)
        except ProcessFailedError as error:
            for job_id in jobs_of(cluster, queue):
                shown = {node.id[:8]: node.show(job_id) for node in cluster.running}
                delivered = {
                    body: self.account.jobs.delivered[body]
                    for body, known in self.account.ids.items()
                    if known.encode() == job_id
                }
                error.add_note(f"{job_id!r}, delivered {delivered}: {shown}")
            raise

    def __enter__(self) -> Self:
        try:
            for node in self._nodes:
                self.consume(node, QUEUE, self.account.handle)
            for producer in self._producers:
                producer.start()
        except BaseException:
            self._opened.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop_adding()
        self._opened.close()


def jobs_of(cluster: RealCluster, queue: str, *states: str) -> Counter[bytes]:
    """The IDs of the jobs of a queue, in all states or in some, and how many nodes have each."""
    words = [word for state in states for word in ("STATE", state)]
    found: Counter[bytes] = Counter()
    for node in cluster.running:
        found.update(node.call("JSCAN", 0, "BUSYLOOP", "QUEUE", queue, *words)[1])
    return found


def counted(node: RealNode, *fields: str) -> int:
    """The sum of some counters of a node."""
    info = node.info()
    return sum(int(info[name]) for name in fields)


def dead_letters_made(node: RealNode) -> int:
    """How many dead letters a node has made since it started."""
    return counted(node, "jobs_dead_limit", "jobs_dead_rejected")


def drain(cluster: RealCluster, queue: str = DEAD_QUEUE) -> list[Letter]:
    """Fetch and acknowledge all dead letters, when each is queued on one node, until no node has a job.

    A letter that is delivered twice is in the list twice.
    """
    cluster.wait_until(lambda: _are_queued_once(cluster, queue), "each dead letter is queued on one node", SETTLING_S)
    letters: list[Letter] = []
    with contextlib.ExitStack() as opened:
        clients = [opened.enter_context(Client([node.address], discover=False)) for node in cluster.nodes]

        def is_empty() -> bool:
            for client in clients:
                letters.extend(_fetch(client, queue))
            return all(node.info("jobs")["registered_jobs"] == "0" for node in cluster.nodes)

        cluster.wait_until(is_empty, "no node has a job", SETTLING_S)
    return letters


def _are_queued_once(cluster: RealCluster, queue: str) -> bool:
    known, queued = jobs_of(cluster, queue), jobs_of(cluster, queue, "dead")
    return known.keys() == queued.keys() and queued.total() == len(queued)


def _fetch(client: Client, queue: str) -> list[Letter]:
    letters: list[Letter] = []
    while jobs := client.get(queue, count=100, nohang=True):
        for job in jobs:
            shown = client.show(job.id)
            assert shown is not None
            letters.append(
                Letter(job.id, job.body, shown.origin_id, shown.origin_queue, shown.reason, shown.attempts_before)
            )
        client.ack(*(job.id for job in jobs))
    return letters
