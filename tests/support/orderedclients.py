"""Clients of ordered queues on real nodes, which note what they saw for `disqued.testing.orderedcheckers`.

    with OrderedClients(cluster) as clients:
        with clients.fault():
            ...
        clients.settle()
    clients.check(at_least=100)

Each queue has two producers and a worker per node. A producer adds one job after the other, each when the one before
was answered; one of the two uses keys and repeats an add until its outcome is known. A worker takes one job at a time
and acknowledges it under its claim. Clients reconnect, to another node if necessary, when a connection breaks or a node
does not answer in time.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final, Self

from disqued.client import ResponseError
from disqued.ordered.jobids import index_of
from disqued.testing.orderedcheckers import Acked, Added, Delivered, OrderedHistory, check
from support.cluster import RealCluster, RealNode
from support.nodeclient import NodeClient, Word

ADD_TIMEOUT_MS: Final = 1000
GET_TIMEOUT_MS: Final = 500
REPLY_TIMEOUT_S: Final = 3.0
"""How long a client waits for a reply before it connects to another node."""
PAUSE_S: Final = 0.01
RETRY_S: Final = 4
NOTED_RETRY_S: Final = 2
"""What the checks take for the retry time: clients see a lease for less long than it lasts."""
GROUPS: Final = 5
SETTLING_S: Final = 90.0
UNKNOWN: Final = "NOREPL"
"""The error to a command whose outcome is not known."""
NOT_SERVED: Final = ("NOQUORUM", "LOADING")
"""Errors to commands that took no effect because of a fault."""


def now_ms() -> int:
    """The time of all clients."""
    return time.monotonic_ns() // 1_000_000


def _require(error: ResponseError, *prefixes: str) -> None:
    """Raise an error unless it is one of these."""
    if not str(error).startswith(prefixes):
        raise error


class _Queue:
    """A queue and its history. A `single` one has prefetch 1; the jobs of another one have group keys."""

    def __init__(self, name: str, *, single: bool) -> None:
        self.name = name
        self.single = single
        self.history = OrderedHistory(single=single, prefetch=1 if single else 0)
        self.lock = threading.Lock()
        self.numbers = itertools.count()

    @property
    def ended(self) -> set[int]:
        """The jobs whose acknowledgement was answered."""
        return {ack.number for ack in self.history.acked if ack.ended}

    def disturb(self) -> None:
        """Something happens that has unfinished jobs delivered again."""
        with self.lock:
            at_ms = now_ms()
            for number in {add.number for add in self.history.added} - self.ended:
                self.history.causes[number].append(at_ms)


class _Client(threading.Thread):
    """Works at one node after the other, while it is not ended."""

    def __init__(self, cluster: RealCluster, queue: _Queue, home: int) -> None:
        super().__init__(daemon=True)
        self.queue = queue
        self.ending = threading.Event()
        self._cluster = cluster
        self._home = home
        self.failure = ""

    def run(self) -> None:
        for number in itertools.count(self._home):
            if self.ending.is_set():
                return
            node = self._cluster.nodes[number % len(self._cluster.nodes)]
            with contextlib.suppress(OSError, EOFError), contextlib.closing(node.connect(REPLY_TIMEOUT_S)) as client:
                try:
                    self.work(client, f"{self.name} at {node.port}")
                except ResponseError as error:
                    self.failure = f"{self.name}: {error!r}"
                    return
            self.ending.wait(PAUSE_S)

    def work(self, client: NodeClient, name: str) -> None:
        """Work over one connection."""
        raise NotImplementedError


class _Producer(_Client):
    """Adds jobs."""

    def __init__(self, cluster: RealCluster, queue: _Queue, home: int, *, keys: bool) -> None:
        super().__init__(cluster, queue, home)
        self._keys = keys
        self._again: int | None = None
        """The job with a key whose add must be repeated."""

    def work(self, client: NodeClient, name: str) -> None:
        """Add jobs."""
        del name
        while not self.ending.is_set() or self._again is not None:
            self._add(client)
            time.sleep(PAUSE_S)

    def _add(self, client: NodeClient) -> None:
        queue = self.queue
        number = next(queue.numbers) if self._again is None else self._again
        added = Added(number, self.name, now_ms())
        added.retry_s = NOTED_RETRY_S
        words: list[Word] = ["ADDJOB", queue.name, str(number), ADD_TIMEOUT_MS, "RETRY", RETRY_S]
        if self._keys:
            added.key = b"key %d" % number
            words += ["KEY", added.key, "WINDOW", 600]
            self._again = number
        if not queue.single:
            added.group = b"group %d" % (number % GROUPS)
            words += ["GROUP", added.group]
        with queue.lock:
            queue.history.added.append(added)
        try:
            job_id = client.call(*words)
        except ResponseError as error:
            if not str(error).startswith(UNKNOWN):
                _require(error, *NOT_SERVED)
                added.refused = True
                added.answered_ms = now_ms()
            return
        added.index = int(index_of(job_id))
        added.answered_ms = now_ms()
        self._again = None


class _Worker(_Client):
    """Takes jobs and acknowledges them."""

    def work(self, client: NodeClient, name: str) -> None:
        """Take jobs over one connection, which is one consumer of a SINGLE queue."""
        name = f"{name} since {now_ms()}"
        queue = self.queue
        while not self.ending.is_set():
            try:
                jobs = client.call("GETJOB", "TIMEOUT", GET_TIMEOUT_MS, "WITHCLAIM", "FROM", queue.name) or []
            except ResponseError as error:
                _require(error, *NOT_SERVED)
                time.sleep(PAUSE_S)
                continue
            for _, job_id, body, _, claim, *_ in jobs:
                number = int(body)
                with queue.lock:
                    queue.history.delivered.append(Delivered(number, int(index_of(job_id)), claim, name, now_ms()))
                try:
                    self._ack(client, job_id, number, claim)
                except (OSError, EOFError):
                    with queue.lock:  # the consumer leaves, and the job may return at once
                        queue.history.causes[number].append(now_ms())
                    raise

    def _ack(self, client: NodeClient, job_id: bytes, number: int, claim: int) -> None:
        ack = Acked(number, claim, now_ms())
        with self.queue.lock:
            self.queue.history.acked.append(ack)
        try:
            ack.ended = client.call("ACKJOB", job_id, "CLAIM", claim) == 1
        except ResponseError as error:
            _require(error, "STALE", UNKNOWN, *NOT_SERVED)
        else:
            ack.answered_ms = now_ms()


class OrderedClients:
    """The clients of two ordered queues: one SINGLE, one with group keys."""

    def __init__(self, cluster: RealCluster, *options: Word) -> None:
        """`options` are those of QNEW for both queues."""
        self._cluster = cluster
        self.strict = _Queue("strict", single=True)
        self.grouped = _Queue("grouped", single=False)
        self.queues = (self.strict, self.grouped)
        node = cluster.nodes[0]
        self._numbers = {one.id.encode(): number for number, one in enumerate(cluster.nodes)}
        node.call("CLUSTER", "ORDERED", "INIT", *self._numbers)
        node.call("QNEW", self.strict.name, "ORDERED", *options, "SINGLE", "PREFETCH", 1)
        node.call("QNEW", self.grouped.name, "ORDERED", *options)
        self._producers = [
            _Producer(cluster, queue, home, keys=home == 0) for queue in self.queues for home in range(2)
        ]
        self._workers = [_Worker(cluster, queue, home) for queue in self.queues for home in range(len(cluster.nodes))]

    # --- during faults ------------------------------------------------------------------------------------------------

    def disturb(self) -> None:
        """Note that a fault begins or ends: unfinished jobs may be delivered again."""
        for queue in self.queues:
            queue.disturb()

    @contextlib.contextmanager
    def fault(self) -> Iterator[None]:
        """A fault that lasts while the context does."""
        self.disturb()
        try:
            yield
        finally:
            self.disturb()

    def leader(self, queue: str = "strict") -> RealNode:
        """The node that leads a queue, as most of the running nodes know it."""
        return self._cluster.nodes[self._leaders(queue)[0]]

    def follower(self, queue: str = "strict") -> RealNode:
        """Another running node with a replica of the queue."""
        leader, *others = self._leaders(queue)
        return next(self._cluster.nodes[one] for one in others if self._cluster.nodes[one].is_running and one != leader)

    def _leaders(self, queue: str) -> list[int]:
        """The numbers of the nodes with replicas, that of the leader first. Waits for a leader that runs."""
        found: list[int] = []

        def look() -> bool:
            ids = self._numbers
            for node in self._cluster.running:
                if not node.server.serves():
                    continue
                status = _by_name(node.call("CLUSTER", "ORDERED", "STATUS"))
                groups = [_by_name(group) for group in status[b"queues"]]
                group = next((one for one in groups if one[b"queue"] == queue.encode()), None)
                if group is None:  # this node has just started, and reads the catalog
                    continue
                leader = ids.get(group[b"leader"])
                if leader is not None and self._cluster.nodes[leader].is_running:
                    replicas = [ids[replica] for replica in group[b"replicas"]]
                    found[:] = [leader, *[one for one in replicas if one != leader]]
                    return True
            return False

        self._cluster.wait_until(look, f"the queue {queue} has a leader")
        return found

    def more(self, jobs: int) -> None:
        """Wait until so many more jobs of each queue are done."""
        wanted = [len(queue.ended) + jobs for queue in self.queues]

        def look() -> bool:
            self._require_running()
            return all(len(queue.ended) >= count for queue, count in zip(self.queues, wanted, strict=True))

        self._wait(look, f"{jobs} more jobs of each queue are done")

    # --- the end ------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """After the faults: stop the producers, and wait until the workers have done everything."""
        for producer in self._producers:
            producer.ending.set()
        for producer in self._producers:
            producer.join(SETTLING_S)
        self.disturb()
        self._wait(self._is_drained, "the queues are empty")
        for queue in self.queues:
            queue.history.drained = True

    def _is_drained(self) -> bool:
        self._require_running()
        for queue in self.queues:
            try:
                stat = _by_name(self._cluster.running[0].call("QSTAT", queue.name))
            except ResponseError:
                return False
            if stat[b"len"] or stat[b"leased"]:
                return False
        return True

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        self._cluster.wait_until(condition, what, SETTLING_S)

    def _require_running(self) -> None:
        failures = [client.failure for client in [*self._producers, *self._workers] if client.failure]
        assert not failures, failures

    def check(self, *, at_least: int) -> None:
        """Assert that what the clients saw is as promised, and that so many jobs of each queue were done."""
        for queue in self.queues:
            wrong = check(queue.history)
            assert not wrong, f"{queue.name}: {wrong[:5]}"
            assert len(queue.ended) >= at_least, f"{queue.name}: only {len(queue.ended)} jobs were done"

    def __enter__(self) -> Self:
        for client in [*self._producers, *self._workers]:
            client.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for client in [*self._producers, *self._workers]:
            client.ending.set()
        for client in [*self._producers, *self._workers]:
            client.join(REPLY_TIMEOUT_S * 3)
        if error is None:
            self._require_running()


def _by_name(flat: list[Any]) -> dict[bytes, Any]:
    """The fields of a reply."""
    return dict(zip(flat[::2], flat[1::2], strict=True))
