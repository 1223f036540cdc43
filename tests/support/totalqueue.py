"""The total-queue checker: clients that add, fetch and acknowledge while faults happen, and the account of every job.

    with Workload(cluster.nodes) as work:
        ...  # faults
    account = work.settle(cluster)
    account.check(at_least=100)

One client at each node, with short time-outs. A third of the jobs have a delay of a second, so that faults find some
that wait. An add that was refused (NOREPL) or whose answer did not come may have happened or not; one that was answered
with an ID must be delivered, in the end by one of the nodes, which are all drained when the faults are over. A client
stays with its node and never fails over to another one.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from disqued.client import ResponseError
from support.cluster import RealCluster, RealNode
from support.nodeclient import NodeClient

QUEUE: Final = "work"
ADD_TIMEOUT_MS: Final = 100
GET_TIMEOUT_MS: Final = 100
REPLY_TIMEOUT_S: Final = 1.0
"""How long a client waits for a node that hangs before it connects anew."""
PAUSE_S: Final = 0.02
SETTLING_S: Final = 60.0


@dataclass
class Account:
    """What became of the jobs, by their bodies, each of which was given to one ADDJOB only."""

    attempted: set[bytes]
    added: set[bytes]
    """Those that were answered with an ID."""
    delivered: Counter[bytes]

    @property
    def lost(self) -> set[bytes]:
        """Added, and never delivered."""
        return self.added - self.delivered.keys()

    @property
    def unexpected(self) -> set[bytes]:
        """Delivered, and never added by anybody."""
        return self.delivered.keys() - self.attempted

    @property
    def recovered(self) -> set[bytes]:
        """Delivered, though the client that added them could not know."""
        return self.delivered.keys() & (self.attempted - self.added)

    @property
    def duplicates(self) -> int:
        """How many deliveries too many there were."""
        return self.delivered.total() - len(self.delivered)

    def __str__(self) -> str:
        return (
            f"attempted {len(self.attempted)}, added {len(self.added)}, delivered {len(self.delivered)}, "
            f"recovered {len(self.recovered)}, duplicates {self.duplicates}, lost {len(self.lost)}, "
            f"unexpected {len(self.unexpected)}"
        )

    def check(self, at_least: int) -> None:
        """Nothing is lost, nothing comes from nowhere, and enough was at stake."""
        assert not self.lost, f"{self}: {sorted(self.lost)[:20]}"
        assert not self.unexpected, f"{self}: {sorted(self.unexpected)[:20]}"
        assert len(self.added) >= at_least, str(self)


class _Client(threading.Thread):
    """Adds, fetches and acknowledges at one node; connects anew when that is needed and possible."""

    def __init__(self, number: int, node: RealNode, options: tuple[str | int, ...]) -> None:
        super().__init__(daemon=True)
        self.attempted: list[bytes] = []
        self.added: dict[bytes, float] = {}
        """When the answer came, by the monotonic clock."""
        self.delivered: Counter[bytes] = Counter()
        self._number = number
        self._node = node
        self._options = options
        self._ending = threading.Event()

    def end(self) -> None:
        """Ask it to come to an end; `join` waits for that."""
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
        body = b"%d:%d" % (self._number, len(self.attempted))
        delay_s = len(self.attempted) % 3 == 0
        self.attempted.append(body)
        with contextlib.suppress(ResponseError):  # NOREPL: there were not enough nodes in time
            node.call("ADDJOB", QUEUE, body, ADD_TIMEOUT_MS, "DELAY", int(delay_s), *self._options)
            self.added[body] = time.monotonic()

    def _fetch(self, node: NodeClient) -> None:
        try:
            fetch(node, self.delivered, timeout_ms=1)
        except ResponseError as refused:
            if not str(refused).startswith("LEAVING"):
                raise


def fetch(node: NodeClient, delivered: Counter[bytes], timeout_ms: int) -> int:
    """Take jobs, count and acknowledge them; returns how many."""
    jobs = node.call("GETJOB", "TIMEOUT", timeout_ms, "COUNT", 100, "FROM", QUEUE) or []
    for _, _, body in jobs:
        delivered[body] += 1  # before the acknowledgement, whose answer may not come
    if jobs:
        node.call("ACKJOB", *(job_id for _, job_id, _ in jobs))
    return len(jobs)


class Workload:
    """A client at each of some nodes, from when the context begins until it ends."""

    def __init__(self, nodes: Iterable[RealNode], *options: str | int) -> None:
        self._clients = [_Client(number, node, options) for number, node in enumerate(nodes)]
        self._drained: Counter[bytes] = Counter()

    @property
    def account(self) -> Account:
        """All of it so far."""
        return Account(
            attempted={body for client in self._clients for body in list(client.attempted)},
            added={body for client in self._clients for body in list(client.added)},
            delivered=sum((client.delivered.copy() for client in self._clients), self._drained.copy()),
        )

    def outstanding(self, before_s: float) -> set[bytes]:
        """The jobs that were added before a time of the monotonic clock, and that nobody was given yet."""
        added = {body for client in self._clients for body, at_s in list(client.added.items()) if at_s < before_s}
        return added - self.account.delivered.keys()

    def end(self, number: int) -> None:
        """Let the client at one of the nodes come to an end before the others."""
        self._clients[number].end()
        self._clients[number].join()

    def settle(self, cluster: RealCluster) -> Account:
        """After the faults: wait until the cluster is whole, drain every node, wait until no node knows any job."""
        cluster.wait_whole()

        def emptied() -> bool:
            for node in cluster.running:
                with contextlib.closing(node.connect()) as client:
                    while fetch(client, self._drained, timeout_ms=GET_TIMEOUT_MS):
                        pass
            return all(node.info("jobs")["registered_jobs"] == "0" for node in cluster.running)

        cluster.wait_until(emptied, "no node knows any job", SETTLING_S)
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
