"""Both clients with a cluster of real nodes: discovery, and failover when a node dies or leaves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from disqued.client import JobId, NotReplicated
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
