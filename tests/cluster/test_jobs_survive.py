"""Jobs in clusters of real processes that are killed, hang, and start again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.cluster import RealCluster, RealNode


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    """Three nodes that have met."""
    with RealCluster(tmp_path, 3) as three:
        yield three


def get(node: RealNode, queue: str = "q", timeout_ms: int = 15_000) -> list[bytes]:
    """ID and body of one job; empty if none arrived in time."""
    found: Any = node.call("GETJOB", "TIMEOUT", timeout_ms, "FROM", queue)
    return [] if found is None else found[0][1:]


def forgotten(cluster: RealCluster, job: bytes) -> bool:
    """Whether no running node knows the job."""
    return cluster.holders(job) == []


# --- copies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_job_has_the_requested_number_of_copies(cluster: RealCluster, copies: int) -> None:
    one = cluster.nodes[0]
    job = one.call("ADDJOB", "q", "x", 0, "REPLICATE", copies)
    holders = cluster.holders(job)
    assert one in holders
    assert len(holders) >= copies
    assert cluster.holders(job, "queued") == [one]


def test_asynchronous_job_gets_its_copies(cluster: RealCluster) -> None:
    job = cluster.nodes[0].call("ADDJOB", "q", "x", 0, "ASYNC", "REPLICATE", 3)
    cluster.wait_until(lambda: len(cluster.holders(job)) == 3, "three nodes have it")


def test_job_is_delivered_when_all_its_holders_but_one_are_killed(cluster: RealCluster) -> None:
    one, two, three = cluster.nodes
    for number in range(3):
        job = one.call("ADDJOB", "q", number, 0, "REPLICATE", 3, "RETRY", 1)
        one.kill()
        two.kill()
        assert get(three) == [job, b"%d" % number]
        assert three.call("ACKJOB", job) == 1
        one.restart()
        two.restart()
        cluster.wait_whole()
        cluster.wait_until(partial(forgotten, cluster, job), "the job is collected")


def test_job_is_requeued_when_the_node_that_queued_it_dies(cluster: RealCluster) -> None:
    one, two, _ = cluster.nodes
    job = one.call("ADDJOB", "q", "x", 0, "REPLICATE", 2, "RETRY", 1)
    one.kill()
    assert get(two) == [job, b"x"]


def test_job_is_requeued_when_its_worker_and_the_delivering_node_die(cluster: RealCluster) -> None:
    one, two, three = cluster.nodes
    job = one.call("ADDJOB", "q", "x", 0, "REPLICATE", 3, "RETRY", 1)
    assert get(one) == [job, b"x"]
    one.kill()
    assert get(two) == [job, b"x"]
    assert two.call("ACKJOB", job) == 1
    one.restart()
    cluster.wait_whole()
    cluster.wait_until(lambda: forgotten(cluster, job), "the job is collected")
    assert get(three, timeout_ms=10) == []


# --- acknowledgements -------------------------------------------------------------------------------------------------


def test_acknowledgement_at_one_node_reaches_all_holders(cluster: RealCluster) -> None:
    one, two, three = cluster.nodes
    job = one.call("ADDJOB", "q", "x", 0, "REPLICATE", 2, "RETRY", 60)
    others = [node for node in (two, three) if node not in cluster.holders(job)]
    assert get(one) == [job, b"x"]
    (others or [three])[0].call("ACKJOB", job)
    cluster.wait_until(lambda: forgotten(cluster, job), "the job is collected")


def test_acknowledgement_is_kept_until_holders_are_back(cluster: RealCluster) -> None:
    one, two, _ = cluster.nodes
    job = one.call("ADDJOB", "q", "x", 0, "REPLICATE", 3, "RETRY", 60)
    assert get(one) == [job, b"x"]
    missed = two.id
    two.stop()
    assert one.call("ACKJOB", job) == 1
    cluster.wait_until(lambda: "fail" in one.view()[missed], "two is missed")
    assert one.show(job) is not None, "it keeps in mind that the job is done until two knows"
    two.cont()
    cluster.wait_until(lambda: forgotten(cluster, job), "the job is collected")
    assert get(two, timeout_ms=10) == []


# --- several nodes at once --------------------------------------------------------------------------------------------


def test_consumers_of_all_nodes_share_the_jobs_of_one_node(cluster: RealCluster) -> None:
    one = cluster.nodes[0]
    with contextlib.ExitStack() as opened:
        waiting = [opened.enter_context(contextlib.closing(node.connect())) for node in cluster.nodes for _ in range(2)]
        for client in waiting:
            client.send("GETJOB", "FROM", "q")
        cluster.wait_until(
            lambda: all(node.info("clients")["blocked_clients"] == "2" for node in cluster.nodes), "all wait"
        )
        added = {one.call("ADDJOB", "q", number, 0, "RETRY", 60) for number in range(len(waiting))}
        assert {client.read()[0][1] for client in waiting} == added


def test_pause_with_bcast_reaches_all_nodes(cluster: RealCluster) -> None:
    one, two, three = cluster.nodes
    assert two.call("PAUSE", "q", "in", "bcast") == b"in"
    cluster.wait_until(
        lambda: [node.call("PAUSE", "q", "state") for node in (one, three)] == [b"in", b"in"], "all are paused"
    )
    with pytest.raises(Exception, match="PAUSED"):
        three.call("ADDJOB", "q", "x", 0)
    assert one.call("PAUSE", "q", "none", "bcast") == b"none"
    cluster.wait_until(
        lambda: [node.call("PAUSE", "q", "state") for node in (two, three)] == [b"none", b"none"], "none is paused"
    )


def test_leaving_node_transfers_all_its_jobs(cluster: RealCluster) -> None:
    one, two, three = cluster.nodes
    jobs = {one.call("ADDJOB", "q", number, 0, "REPLICATE", 1, "RETRY", 60) for number in range(200)}
    assert one.call("CLUSTER", "LEAVING", "yes") == b"OK"
    cluster.wait_until(lambda: one.info("jobs")["registered_jobs"] == "0", "the leaving node is empty")
    assert one.end() == 0
    found = {job for node in (two, three) for job in jobs if node.show(job) is not None}
    assert found == jobs


@pytest.mark.slow
def test_seven_nodes_form_a_cluster_and_keep_seven_copies(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 7) as cluster:
        job = cluster.nodes[0].call("ADDJOB", "q", "x", 0, "REPLICATE", 7, "RETRY", 1)
        assert len(cluster.holders(job)) == 7
        for node in cluster.nodes[:6]:
            node.kill()
        assert get(cluster.nodes[6]) == [job, b"x"]
