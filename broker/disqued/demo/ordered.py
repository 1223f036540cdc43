"""An ordered queue whose leader is killed: its jobs are delivered in their order, without a gap or an inversion.

The queue is SINGLE with prefetch 1, so one worker at a time gets its jobs, one by one. A worker waits at each node. The
first one is at the node that leads the queue. When a third of the jobs is done, that node is killed, so the queue loses
its leader and its active worker at once. A job that was not acknowledged is delivered again before any later one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from disqued.client import (
    Client,
    ConnectionFailed,
    ConnectionLost,
    DisqueError,
    Job,
    Loading,
    NoQuorum,
    NotReplicated,
    StaleClaim,
)
from disqued.demo.cluster import BrokerNode, Cluster
from disqued.demo.waiting import wait_for
from disqued.demo.workers import WorkFailedError

QUEUE = "demo:orders"
JOBS = 300
AHEAD = 50
"""How many jobs the producer adds before the workers have done them."""
RETRY_S = 60
ADD_TIMEOUT_MS = 5000
FETCH_TIMEOUT_MS = 200
DOWN_S = 1.0
TASK_S = 0.003
"""How long a worker needs for a job."""
POLL_S = 0.02
DEADLINE_S = 60.0
"""The scene fails if no job is added, delivered or done for this time."""
DOWN = (ConnectionFailed, ConnectionLost, Loading)
"""The errors to a request while the node is killed and restarted. It may have been executed."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A job that a worker received. `number` is in its body, `claim` grows with each delivery of the queue."""

    claim: int
    number: int
    worker: str
    at_s: float


@dataclass(slots=True)
class DeliveryOrder:
    """The deliveries of all workers. They are compared in the order of their claims, in which the queue made them."""

    deliveries: list[Delivery] = field(default_factory=list)

    def numbers(self) -> list[int]:
        """The numbers of the jobs as they were delivered, with repetitions."""
        return [delivery.number for delivery in sorted(self.deliveries, key=lambda one: one.claim)]

    def gaps(self) -> list[int]:
        """The jobs that were delivered although the job before was not."""
        return [after for before, after in pairwise([-1, *self.numbers()]) if after > before + 1]

    def inversions(self) -> list[int]:
        """The jobs that were delivered after a later one."""
        return [after for before, after in pairwise(self.numbers()) if after < before]

    def repeated(self) -> int:
        """How many deliveries were not the first one of their job."""
        return len(self.deliveries) - len({delivery.number for delivery in self.deliveries})

    def by_worker(self) -> dict[str, list[Delivery]]:
        """The deliveries of each worker in their order; the workers in the order of their first ones."""
        found: dict[str, list[Delivery]] = {}
        for delivery in sorted(self.deliveries, key=lambda one: one.claim):
            found.setdefault(delivery.worker, []).append(delivery)
        return found


@dataclass(slots=True)
class OrderedJobs:
    """The scene. `run` does it; the other fields are what happened."""

    cluster: Cluster
    say: Callable[[str], None]
    """Shows a line about what happens."""
    order: DeliveryOrder = field(default_factory=DeliveryOrder)
    added: int = 0
    done: set[int] = field(default_factory=set)
    killed: str = ""
    """The node that was killed."""
    killed_s: float = 0.0
    accepted_s: float = 0.0
    """Seconds from the kill until an add was answered that was sent after it."""
    _over: threading.Event = field(default_factory=threading.Event)
    _failures: list[str] = field(default_factory=list)

    @property
    def delivered_s(self) -> float:
        """Seconds from the kill until the next delivery; 0 if there was none."""
        later = [delivery.at_s for delivery in self.order.deliveries if delivery.at_s > self.killed_s]
        return min(later) - self.killed_s if later else 0.0

    def run(self) -> None:
        """Make the queue, add and process all jobs, and kill the leader meanwhile.

        Raises:
            WorkFailedError: the jobs made no progress, or a request failed.
        """
        threads: list[threading.Thread] = []
        try:
            leader = self._make_queue()
            followers = [node for node in self.cluster.nodes if node is not leader]
            threads += [self._start(self._produce, followers[0]), self._start(self._work, leader)]
            self._wait(lambda: self.order.deliveries, "the first worker has a job")
            threads += [self._start(self._work, node) for node in followers]
            self._wait(lambda: 3 * len(self.done) >= JOBS, "a third of the jobs is done")
            self._kill(leader)
            self._wait(lambda: len(self.done) == JOBS, "all jobs are done")
            self._wait(lambda: self.cluster.is_complete, f"{leader.name} is back")
        except DisqueError as error:
            raise WorkFailedError(f"the ordered queue: {error}") from error
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def problem(self) -> str | None:
        """Return what contradicts the promises of the queue, or None."""
        if self.order.gaps():
            return f"{len(self.order.gaps())} jobs were delivered before the job before them: {self.order.gaps()[:3]}"
        if self.order.inversions():
            return f"{len(self.order.inversions())} jobs were delivered after later ones: {self.order.inversions()[:3]}"
        if self.order.numbers()[-1] != JOBS - 1:
            return f"{JOBS - 1 - self.order.numbers()[-1]} jobs were not delivered"
        return None

    def _make_queue(self) -> BrokerNode:
        """Found the catalog of ordered queues, make the queue, and return the node that leads it."""
        ids = self.cluster.ids()
        with Client((self.cluster.nodes[0].address,)) as client:
            client.execute("CLUSTER", "ORDERED", "INIT", *ids, wait_s=DEADLINE_S)
            client.execute("QNEW", QUEUE, "ORDERED", "SINGLE", "PREFETCH", 1, wait_s=DEADLINE_S)
            status = _pairs(client.execute("CLUSTER", "ORDERED", "STATUS"))
            queues = status[b"queues"]
            assert isinstance(queues, list)
            leader = _pairs(queues[0])[b"leader"]
        assert isinstance(leader, bytes)
        return ids[leader.decode()]

    def _kill(self, leader: BrokerNode) -> None:
        leader.process.kill()
        self.killed_s, self.killed = time.monotonic(), leader.name
        self.say(
            f"{self.added} jobs added, {len(self.done)} done: {leader.name} is killed, which led the queue and served "
            "its active worker"
        )
        time.sleep(DOWN_S)
        leader.start()
        leader.process.wait_loaded()

    # --- threads ------------------------------------------------------------------------------------------------------

    def _start(self, target: Callable[[BrokerNode], None], node: BrokerNode) -> threading.Thread:
        thread = threading.Thread(target=self._run, args=(target, node), daemon=True)
        thread.start()
        return thread

    def _run(self, target: Callable[[BrokerNode], None], node: BrokerNode) -> None:
        try:
            target(node)
        except (DisqueError, ValueError) as error:
            self._failures.append(f"the ordered queue: {type(error).__name__}: {error}")

    def _produce(self, node: BrokerNode) -> None:
        """Add the jobs, each when the one before was accepted; the second half only after the leader was killed."""
        with Client((node.address,), discover=False) as client:
            for number in range(JOBS):
                while number - len(self.done) >= AHEAD or (2 * number >= JOBS and not self.killed):
                    if self._over.wait(POLL_S):
                        return
                self._add(client, number)
                self.added = number + 1

    def _add(self, client: Client, number: int) -> None:
        """Add one job. Its key makes repetitions one job, so an add with an unknown outcome is repeated."""
        deadline_s = time.monotonic() + DEADLINE_S
        while True:
            sent_s = time.monotonic()
            try:
                client.add(
                    QUEUE,
                    str(number),
                    key=f"order-{number}",
                    retry_s=RETRY_S,
                    timeout_ms=ADD_TIMEOUT_MS,
                    repeat=True,
                )
            except (NotReplicated, NoQuorum):
                if time.monotonic() > deadline_s:
                    raise
            else:
                if self.killed_s and sent_s > self.killed_s and not self.accepted_s:
                    self.accepted_s = time.monotonic() - self.killed_s
                return

    def _work(self, node: BrokerNode) -> None:
        with Client((node.address,), discover=False) as client:
            while not self._over.is_set():
                try:
                    for job in client.get(QUEUE, timeout_ms=FETCH_TIMEOUT_MS, with_claim=True):
                        self._do(client, job, f"worker {node.number}")
                except DOWN:
                    self._over.wait(POLL_S)

    def _do(self, client: Client, job: Job, worker: str) -> None:
        number = int(job.body)
        self.order.deliveries.append(Delivery(job.claim or 0, number, worker, time.monotonic()))
        time.sleep(TASK_S)
        if self._acknowledge(client, job):
            self.done.add(number)

    def _acknowledge(self, client: Client, job: Job) -> bool:
        """Acknowledge a job, and return whether it is done: it is not if another worker has it now.

        A request without an answer is repeated. If it was executed, nobody gets the job again.
        """
        while not self._over.is_set():
            try:
                client.ack(job.id, claim=job.claim)
            except (*DOWN, NoQuorum):
                self._over.wait(POLL_S)
            except StaleClaim:
                return False
            else:
                return True
        return False

    def _wait(self, condition: Callable[[], object], what: str) -> None:
        wait_for(
            condition,
            what,
            progress=lambda: self.added + len(self.order.deliveries) + len(self.done),
            patience_s=DEADLINE_S,
            failures=self._failures,
            describe=lambda: f"{self.added} jobs were added, {len(self.done)} are done.",
        )


def _pairs(flat: object) -> dict[bytes, object]:
    """The fields of a reply by name."""
    assert isinstance(flat, list)
    return dict(zip(flat[::2], flat[1::2], strict=True))
