"""`shutdown-on-sigterm drain`: a node that a signal stops transfers its jobs first."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from disqued.client.errors import NodeLeaving
from support.cluster import RealCluster, RealNode

DRAINS = ("--shutdown-on-sigterm", "drain", "--shutdown-drain-timeout", "3600")
ON_ONE_NODE = ("REPLICATE", 1, "RETRY", 60)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    with RealCluster(tmp_path, 3, *DRAINS) as cluster:
        yield cluster


def add(node: RealNode, count: int) -> set[bytes]:
    return {node.call("ADDJOB", "q", number, 0, *ON_ONE_NODE) for number in range(count)}


def found(nodes: list[RealNode], jobs: set[bytes]) -> set[bytes]:
    return {job for node in nodes for job in jobs if node.show(job) is not None}


def test_jobs_of_one_copy_survive_the_stop_of_their_node(cluster: RealCluster) -> None:
    stopped, *others = cluster.nodes
    jobs = add(stopped, 500)
    assert stopped.end() == 0
    assert found(others, jobs) == jobs
    assert "All jobs are on other nodes" in stopped.log


def test_node_that_starts_again_stays(cluster: RealCluster) -> None:
    stopped, *others = cluster.nodes
    jobs = add(stopped, 50)
    assert stopped.end() == 0
    stopped.restart()
    cluster.wait_whole()
    assert stopped.call("CLUSTER", "LEAVING") == b"no"
    assert found([stopped], jobs) == set()
    cluster.wait_until(
        lambda: not any("leaving" in flags for node in others for flags in node.view().values()),
        "all see that it stays",
    )


def test_node_that_was_told_to_leave_still_leaves_when_it_starts_again(cluster: RealCluster) -> None:
    stopped = cluster.nodes[0]
    add(stopped, 50)
    assert stopped.call("CLUSTER", "LEAVING", "yes") == b"OK"
    assert stopped.end() == 0
    stopped.restart()
    assert stopped.call("CLUSTER", "LEAVING") == b"yes"


def test_cluster_that_is_stopped_as_a_whole_does_not_wait(cluster: RealCluster) -> None:
    for node in cluster.nodes:
        add(node, 50)
    for node in cluster.nodes:
        node.server.process.send_signal(signal.SIGTERM)
    assert [node.server.process.wait(60) for node in cluster.nodes] == [0, 0, 0]
    assert "jobs that no other node took: no other node stays" in "".join(node.log for node in cluster.nodes)


def test_node_without_others_stops_at_once(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 1, *DRAINS) as cluster:
        [node] = cluster.nodes
        add(node, 1)
        assert node.end() == 0
        assert "Shutting down with 1 jobs that no other node took: no other node stays" in node.log


def test_node_stops_after_the_timeout_if_no_other_node_answers(cluster: RealCluster) -> None:
    stopped, *others = cluster.nodes
    add(stopped, 7)
    for node in others:
        node.kill()
    assert stopped.call("CONFIG", "SET", "shutdown-drain-timeout", "1") == b"OK"
    assert stopped.end() == 0
    assert "Shutting down with 7 jobs that no other node took: shutdown-drain-timeout is over" in stopped.log


def test_clients_that_wait_for_jobs_are_told(cluster: RealCluster) -> None:
    stopped = cluster.nodes[0]
    with contextlib.closing(stopped.connect()) as waiting:
        waiting.send("GETJOB", "FROM", "nothing")
        cluster.wait_until(lambda: stopped.info("clients")["blocked_clients"] == "1", "it waits")
        assert stopped.end() == 0
        with pytest.raises(NodeLeaving):
            waiting.read()
