"""Both clients with a cluster of real nodes: discovery, and failover when a node dies or leaves."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from typing import Any, Self

import pytest

from disqued.client import Client, Job, JobId, NotReplicated
from disqued.client.locality import WINDOW_JOBS, WINDOW_S
from support.cluster import RealCluster, RealNode

LONG_S = 20.0


@pytest.fixture
def cluster(tmp_path: Any) -> Iterator[RealCluster]:
    with RealCluster(tmp_path, 3) as nodes:
        yield nodes


def current(cluster: RealCluster, client: Any) -> RealNode:
    """The node that a client uses."""
    (node,) = [node for node in cluster.nodes if node.address == client.node]
    return node


def is_blocked(node: RealNode) -> bool:
    return node.info("clients")["blocked_clients"] == "1"


class Producer:
    """Adds jobs at one node until it is stopped, with one copy each; `added` has their IDs."""

    def __init__(self, node: RealNode) -> None:
        self.added: set[str] = set()
        self._address = node.address
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        with Client([self._address], discover=False) as client:
            while not self._stopping.is_set():
                if client.qlen("mail") > 500:
                    continue
                results = client.add_many("mail", ["x"] * 50, replicate=1, retry_s=300)
                assert all(isinstance(result, JobId) for result in results), results
                self.added.update(str(result) for result in results)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()


def leave(node: RealNode) -> None:
    assert node.call("CLUSTER", "LEAVING", "yes") == b"OK"


def test_client_with_one_address_fails_over_when_its_node_dies(cluster: RealCluster, connect: Any) -> None:
    one, *others = cluster.nodes
    client = connect([one.address])
    kept = client.add("mail", "kept", replicate=3, retry_s=1)
    one.kill()

    assert client.ping() == "PONG"
    assert current(cluster, client) in others
    [job] = client.get("mail", timeout_ms=10_000)
    assert job.id == kept
    assert client.ack(kept) == 1
    with pytest.raises(NotReplicated):
        client.add("mail", "x", replicate=3, timeout_ms=100)
    assert isinstance(client.add("mail", "y", replicate=2), JobId)


def test_blocked_get_continues_on_another_node_when_its_node_dies(cluster: RealCluster, connect: Any) -> None:
    one, two, _ = cluster.nodes
    client = connect([one.address])
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.extend(client.get("mail", timeout_ms=20_000)))
    waiting.start()
    cluster.wait_until(lambda: is_blocked(one))
    one.kill()
    # The second node may still deliver the job to the client that asked last, which is gone.
    two.call("ADDJOB", "mail", "x", 0, "REPLICATE", 1, "RETRY", 1)
    waiting.join(LONG_S)
    assert [job.body for job in got] == [b"x"]


def test_consumer_switches_nodes_when_its_node_leaves(cluster: RealCluster, connect: Any) -> None:
    one, two, three = cluster.nodes
    client = connect([one.address])
    done = threading.Semaphore(0)
    with client.consumer("mail", lambda _: done.release()):
        two.call("ADDJOB", "mail", "first", 0, "REPLICATE", 1)
        assert done.acquire(timeout=LONG_S)
        leave(one)
        cluster.wait_until(lambda: is_blocked(two) or is_blocked(three))
        two.call("ADDJOB", "mail", "second", 0, "REPLICATE", 1)
        assert done.acquire(timeout=LONG_S)
        cluster.wait_until(lambda: all(node.info("jobs")["registered_jobs"] == "0" for node in cluster.nodes))
    assert current(cluster, client) is not one


@pytest.mark.slow
def test_consumer_moves_to_the_node_that_its_jobs_come_from_and_loses_none(cluster: RealCluster, connect: Any) -> None:
    one, two, _ = cluster.nodes
    client = connect([one.address])
    handled: list[str] = []
    held = threading.Event()
    first = iter([held])

    def handler(job: Job) -> None:
        for event in first:
            event.wait(LONG_S)  # its result is sent after the move, at the node that delivered it
        handled.append(job.id)

    with client.consumer("mail", handler, concurrency=3, prefetch=20):
        with Producer(two) as producer:
            cluster.wait_until(lambda: is_served_by(two, one))
        held.set()
        cluster.wait_until(lambda: all(node.info("jobs")["registered_jobs"] == "0" for node in cluster.nodes))
    assert sorted(handled) == sorted(producer.added), "each job was handled once"
    assert current(cluster, client) is one, "other calls of the client stay at its node"


def is_served_by(node: RealNode, not_by: RealNode) -> bool:
    """Whether clients fetch jobs at the first node and not at the second one any more."""
    before = (getjobs(node), getjobs(not_by))
    node.call("PING")
    return getjobs(node) > before[0] and before[1] == getjobs(not_by) > 0


def getjobs(node: RealNode) -> int:
    """How often GETJOB was called at a node."""
    calls = re.search(r"calls=(\d+)", node.info("commandstats").get("cmdstat_getjob", ""))
    return int(calls[1]) if calls else 0


@pytest.mark.slow
def test_consumer_stays_when_its_jobs_come_from_several_nodes(cluster: RealCluster, connect: Any) -> None:
    one, two, three = cluster.nodes
    client = connect([one.address])
    handled = threading.Semaphore(0)
    with Producer(two), Producer(three), client.consumer("mail", lambda _: handled.release(), prefetch=20):
        began = time.monotonic()
        jobs = 0
        while jobs < 4 * WINDOW_JOBS or time.monotonic() < began + 2 * WINDOW_S:
            assert handled.acquire(timeout=LONG_S)
            jobs += 1
    assert getjobs(two) == getjobs(three) == 0
