"""The total-queue checker: clients add, fetch and acknowledge while faults happen, and keep account of every job.

    with Workload(cluster.nodes) as work:
        ...  # faults
    account = work.settle(cluster)
    account.check(at_least=100)

Each node has one client, with short timeouts and without failover. A third of the jobs are delayed by one second, so
that some are waiting when a fault happens. A job whose ADDJOB was refused (NOREPL) or not answered may exist or not. A
job whose ID was received must be delivered, at the latest when all nodes are drained after the faults.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

from disqued.client import ResponseError
from disqued.testing.account import JobAccount
from support.cluster import RealCluster, RealNode
from support.nodeclient import NodeClient

QUEUE: Final = "work"
ADD_TIMEOUT_MS: Final = 100
GET_TIMEOUT_MS: Final = 100
REPLY_TIMEOUT_S: Final = 1.0
"""How long a client waits for a node that hangs before it reconnects."""
PAUSE_S: Final = 0.02
SETTLING_S: Final = 60.0


class _Client(threading.Thread):
    """Adds, fetches and acknowledges jobs at one node; reconnects when necessary."""

    def __init__(self, number: int, node: RealNode, options: tuple[str | int, ...]) -> None:
        super().__init__(daemon=True)
        self.account = JobAccount[bytes]()
        """By bodies, with times of the monotonic clock."""
        self._attempts = 0
        self._number = number
        self._node = node
        self._options = options
        self._ending = threading.Event()

    def end(self) -> None:
        """Ask the client to finish; `join` waits for that."""
        self._ending.set()

    def run(self) -> None:
        while not self._ending.is_set():
            with contextlib.suppress(OSError, EOFError):
                self._work()
            self._ending.wait(PAUSE_S)

    def _work(self) -> None:
        with contextlib.closing(self._node.connect(REPLY_TIMEOUT_S)) as node:
            while not self._ending.is_set():
                self._add(node)
                self._fetch(node)
                self._ending.wait(PAUSE_S)

    def _add(self, node: NodeClient) -> None:
        body = b"%d:%d" % (self._number, self._attempts)
        delay_s = self._attempts % 3 == 0
        self._attempts += 1
        self.account.attempted.add(body)
        with contextlib.suppress(ResponseError):  # NOREPL: not enough nodes had a copy in time
            node.call("ADDJOB", QUEUE, body, ADD_TIMEOUT_MS, "DELAY", int(delay_s), *self._options)
            self.account.add(body, time.monotonic())

    def _fetch(self, node: NodeClient) -> None:
        try:
            fetch(node, self.account, timeout_ms=1)
        except ResponseError as refused:
            if not str(refused).startswith("LEAVING"):
                raise


def fetch(node: NodeClient, account: JobAccount[bytes], timeout_ms: int) -> int:
    """Fetch, count and acknowledge jobs; returns how many."""
    jobs = node.call("GETJOB", "TIMEOUT", timeout_ms, "COUNT", 100, "FROM", QUEUE) or []
    for _, _, body in jobs:
        account.delivered[body] += 1  # before the acknowledgement, whose reply may not come
    if jobs:
        node.call("ACKJOB", *(job_id for _, job_id, _ in jobs))
        for _, _, body in jobs:
            account.complete(body, time.monotonic())
    return len(jobs)


class Workload:
    """One client at each of the nodes, while the context lasts."""

    def __init__(self, nodes: Iterable[RealNode], *options: str | int) -> None:
        self._clients = [_Client(number, node, options) for number, node in enumerate(nodes)]
        self._drained = JobAccount[bytes]()

    @property
    def account(self) -> JobAccount[bytes]:
        """The account of all clients so far."""
        total = JobAccount[bytes]()
        for one in [self._drained, *(client.account for client in self._clients)]:
            total.update(one)
        return total

    def outstanding(self, before_s: float) -> set[bytes]:
        """The jobs that were added before a time of the monotonic clock and are not delivered yet."""
        account = self.account
        return {body for body in account.undelivered if account.added[body] < before_s}

    def end(self, number: int) -> None:
        """Finish the client of one of the nodes before the others."""
        self._clients[number].end()
        self._clients[number].join()

    def settle(self, cluster: RealCluster) -> JobAccount[bytes]:
        """After the faults: wait until the cluster is complete, drain every node, wait until no node holds a job."""
        cluster.wait_whole()

        def emptied() -> bool:
            for node in cluster.running:
                with contextlib.closing(node.connect()) as client:
                    while fetch(client, self._drained, timeout_ms=GET_TIMEOUT_MS):
                        pass
            return all(node.info("jobs")["registered_jobs"] == "0" for node in cluster.running)

        cluster.wait_until(emptied, "no node holds a job", SETTLING_S)
        return self.account

    def __enter__(self) -> Self:
        for client in self._clients:
            client.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for client in self._clients:
            client.end()
        for client in self._clients:
            client.join()
