"""Leases: a worker has the whole retry time for its job, however long the job waited in its queue."""

from __future__ import annotations

from disqued.core.jobs.job import BY_TIMER, LEASED
from disqued.testing.cluster import Cluster
from support.stories import added, job_at, job_messages

RETRY_S = 5
REPLICATED = ("REPLICATE", 3, "RETRY", RETRY_S, "TTL", 3600)
ALMOST_S = 4.4
"""Just before the nodes announce the requeue to each other (WILLQUEUE)."""


def in_queues(cluster: Cluster) -> int:
    return sum(int(str(member.admin.call("QLEN", "mail"))) for member in cluster.members)


def requeue_everywhere_at(cluster: Cluster, job: bytes, at_ms: int) -> None:
    """Make all nodes requeue their copies at the same time, without WILLQUEUE."""
    for member in cluster.members:
        copy = job_at(member, job)
        copy.flags &= 255 - 2
        member.node.state.lifecycle.requeue_at(copy, at_ms)


def test_other_holders_wait_for_the_worker_of_a_job_that_waited_long(cluster: Cluster) -> None:
    first = cluster.members[0]
    job = added(cluster, *REPLICATED)
    cluster.run(seconds=ALMOST_S)
    assert first.admin.take("mail") == [job]
    for _ in range(44):
        cluster.run(milliseconds=100)
        assert in_queues(cluster) == 0
    assert "WORKING" in job_messages(cluster, by=first)
    cluster.run(seconds=1.5)
    assert in_queues(cluster) == 1
    assert job_at(first, job).additional_deliveries == 1


def test_job_acknowledged_within_its_retry_time_is_not_requeued(cluster: Cluster) -> None:
    first = cluster.members[0]
    job = added(cluster, *REPLICATED)
    cluster.run(seconds=ALMOST_S)
    assert first.admin.take("mail") == [job]
    cluster.run(seconds=3)
    first.admin.call("ACKJOB", job)
    cluster.run(seconds=20)
    assert in_queues(cluster) == 0
    assert cluster.copies(job) == []


def test_job_is_requeued_when_its_node_and_worker_die(cluster: Cluster) -> None:
    first, *others = cluster.members
    job = added(cluster, *REPLICATED)
    cluster.run(seconds=ALMOST_S)
    assert first.admin.take("mail") == [job]
    first.crash()
    cluster.run(seconds=2 * RETRY_S)
    assert [len(member.admin.take("mail")) for member in others].count(1) == 1


def test_two_nodes_that_queue_a_job_at_once_deliver_it_once(cluster: Cluster) -> None:
    job = added(cluster, *REPLICATED)
    assert cluster.members[0].admin.take("mail") == [job]
    for one in cluster.members:
        for other in cluster.members:
            cluster.network.path(one, other).delay_ms = 40
    for member in cluster.members:
        requeue_everywhere_at(cluster, job, cluster.network.now_ms + 10)
        cluster.run(milliseconds=30)
        assert in_queues(cluster) == 3, "no node knows yet that the others queued it"
        assert member.admin.take("mail") == [job]
        cluster.run(milliseconds=200)
        assert in_queues(cluster) == 0


def test_nack_at_another_node_requeues_the_job_at_once(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job = added(cluster, *REPLICATED)
    assert first.admin.take("mail") == [job]
    assert second.admin.call("NACK", job) == 1
    cluster.run(milliseconds=20)
    assert in_queues(cluster) == 1
    assert not job_at(first, job).flags & LEASED


def test_job_leased_by_two_nodes_is_still_requeued(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job = added(cluster, *REPLICATED)
    assert first.admin.take("mail") == [job]
    cluster.lose("QUEUED")
    assert second.admin.call("ENQUEUE", job) == 1
    assert second.admin.take("mail") == [job]
    cluster.run(milliseconds=10)
    cluster.heal()
    assert all(job_at(member, job).flags & LEASED for member in (first, second))
    cluster.until(lambda: in_queues(cluster) == 1, within_s=3 * RETRY_S)


def test_local_flags_of_a_job_are_not_sent(cluster: Cluster) -> None:
    first = cluster.members[0]
    job = added(cluster, "REPLICATE", 1, "RETRY", 1)
    assert first.admin.take("mail") == [job]
    cluster.run(seconds=2)
    copy = job_at(first, job)
    assert copy.flags & BY_TIMER
    cluster.members[1].admin.take("mail")
    cluster.until(lambda: bool(cluster.sent("YOURJOBS")), within_s=10)
    (sent, *_) = cluster.sent("YOURJOBS")
    flags = sent.frame.data[int(sent.frame.jobs_at) + 45]
    assert flags & ~3 == 0
