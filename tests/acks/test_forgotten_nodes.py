"""CLUSTER FORGET: acknowledged jobs no longer wait for a forgotten node, and no job lists it as a holder."""

from __future__ import annotations

from disqued.acks.room import JOBS_PER_VISIT
from disqued.testing.cluster import Cluster
from support.stories import added, job_at, job_messages

REPLICATED = ("REPLICATE", 3, "RETRY", 60, "TTL", 3600)


def test_jobs_that_waited_for_a_forgotten_node_are_collected(cluster: Cluster) -> None:
    first, second, third = cluster.members
    jobs = [added(cluster, *REPLICATED) for _ in range(20)]
    third.crash()
    assert first.admin.call("ACKJOB", *jobs) == 20
    cluster.run(seconds=100)
    assert first.node.state.lifecycle.acked_jobs == 20
    assert second.node.state.lifecycle.acked_jobs == 20
    for member in (first, second):
        assert member.admin.call("CLUSTER", "FORGET", third.id) == b"OK"
    cluster.run(milliseconds=300)
    assert first.node.state.lifecycle.table.count == 0
    assert second.node.state.lifecycle.table.count == 0


def test_jobs_of_a_forgotten_node_are_collected_in_slices(cluster: Cluster) -> None:
    first, _, third = cluster.members
    state = first.node.state
    jobs = [first.admin.add("mail", "body", "REPLICATE", 3, "ASYNC", "RETRY", 60) for _ in range(3500)]
    cluster.run(seconds=1)
    third.crash()
    first.admin.call("ACKJOB", *jobs)
    cluster.run(seconds=20)
    assert state.lifecycle.acked_jobs == 3500
    first.admin.call("CLUSTER", "FORGET", third.id)
    left = [int(state.lifecycle.acked_jobs)]
    while left[-1] > 0:
        cluster.run(milliseconds=100)
        left.append(int(state.lifecycle.acked_jobs))
        assert left[-2] - left[-1] <= JOBS_PER_VISIT + 100
    assert 3 <= len(left) <= 5


def test_forgotten_node_is_removed_from_the_holders_of_jobs(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job = added(cluster, *REPLICATED)
    third.crash()
    first.admin.call("CLUSTER", "FORGET", third.id)
    assert first.admin.show(job)["nodes-delivered"] == [
        node_id for node_id in job_at(first, job).delivered or () if node_id != third.id
    ]
    assert first.admin.call("ACKJOB", job) == 1
    cluster.run(milliseconds=10)
    assert [int(sent.frame.aux) for sent in cluster.sent("SETACK", by=first)] == [2]
    second.admin.call("CLUSTER", "FORGET", third.id)
    cluster.run(milliseconds=300)
    assert cluster.copies(job) == []


def test_acknowledgements_are_dropped_when_the_last_other_node_is_forgotten(cluster: Cluster) -> None:
    first, second, third = cluster.members
    foreign = b"D-0badcafe-" + b"A" * 24 + b"-05a1"
    second.crash()
    third.crash()
    first.admin.call("ACKJOB", foreign)
    cluster.run(seconds=2)
    assert first.admin.show(foreign)["state"] == b"acked"
    for other in (second, third):
        first.admin.call("CLUSTER", "FORGET", other.id)
    cluster.run(milliseconds=300)
    assert first.admin.show(foreign) == {}
    assert "DELJOB" not in job_messages(cluster)
