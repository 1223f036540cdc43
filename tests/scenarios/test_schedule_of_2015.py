"""The schedule that lost acknowledged jobs in 2015 (issue 92 of the original), shortened: one node dies at a time.

Five nodes, REPLICATE 3, RETRY 1, one client at each node that adds, fetches and acknowledges. One node at a time is
killed and started again with nothing in memory, or made to hang. Then the cluster heals and every node is drained. Adds
that were refused, or whose answer was lost, may have happened or not; every other one has to be delivered.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import hiredis
import pytest

from support.cluster import NodeClient, RealCluster, RealNode

WORK_S = 8.0
DOWN_S = 1.0
UP_S = 1.0
PAUSE_S = 0.02


class Client(threading.Thread):
    """Adds, fetches and acknowledges at one node until told to stop; hangs on to the node while it is away."""

    def __init__(self, number: int, port: int, ended: threading.Event) -> None:
        super().__init__(daemon=True)
        self.number = number
        self.port = port
        self.ended = ended
        self.attempted: set[bytes] = set()
        self.added: set[bytes] = set()
        self.fetched: Counter[bytes] = Counter()

    def run(self) -> None:
        while not self.ended.is_set():
            try:
                with closing(NodeClient(self.port, timeout_s=5)) as client:
                    while not self.ended.is_set():
                        self._add(client)
                        self.fetch(client, timeout_ms=1)
                        time.sleep(PAUSE_S)
            except (OSError, EOFError):
                time.sleep(PAUSE_S)

    def _add(self, client: NodeClient) -> None:
        body = b"%d:%d" % (self.number, len(self.attempted))
        self.attempted.add(body)
        try:
            client.call("ADDJOB", "q", body, 100, "REPLICATE", 3, "RETRY", 1, "TTL", 600)
        except hiredis.ReplyError:  # NOREPL: there were not three nodes in time
            return
        self.added.add(body)

    def fetch(self, client: NodeClient, timeout_ms: int) -> int:
        """Take jobs and acknowledge them; returns how many."""
        jobs = client.call("GETJOB", "TIMEOUT", timeout_ms, "COUNT", 100, "FROM", "q") or []
        for _, job_id, body in jobs:
            self.fetched[body] += 1  # before the acknowledgement, whose answer may be lost
            client.call("ACKJOB", job_id)
        return len(jobs)


def restart(node: RealNode) -> None:
    """It loses all it knew."""
    node.kill()
    time.sleep(DOWN_S)
    node.restart()


def hang(node: RealNode) -> None:
    """It is cut off and knows everything still."""
    node.stop()
    time.sleep(DOWN_S)
    node.cont()


@pytest.mark.parametrize("fault", [restart, hang])
def test_every_acknowledged_add_is_accounted_for(tmp_path: Path, fault: Callable[[RealNode], None]) -> None:
    with RealCluster(tmp_path, 5, node_timeout_ms=200) as cluster:
        ended = threading.Event()
        clients = [Client(number, node.port, ended) for number, node in enumerate(cluster.nodes)]
        for client in clients:
            client.start()
        until_s = time.monotonic() + WORK_S
        faults = 0
        while time.monotonic() < until_s:
            fault(cluster.nodes[faults % len(cluster.nodes)])
            faults += 1
            time.sleep(UP_S)
        ended.set()
        for client in clients:
            client.join(30)
            assert not client.is_alive()
        cluster.wait_whole()

        added = set().union(*(client.added for client in clients))
        fetched: Counter[bytes] = sum((client.fetched for client in clients), Counter())
        drain = Client(-1, 0, ended)

        def drained() -> bool:
            for node in cluster.nodes:
                with closing(node.connect()) as connection:
                    drain.fetch(connection, timeout_ms=200)
            return added <= (fetched + drain.fetched).keys()

        cluster.wait_until(drained, "all jobs whose adding was acknowledged are delivered")
        assert faults >= 3
        assert len(added) > 100
        assert (fetched + drain.fetched).keys() <= set().union(*(client.attempted for client in clients))
