"""A job that moves keeps its expiry, and what the importer knew of it before counts."""

from __future__ import annotations

from disqued.bus import kinds
from disqued.core.jobs.job import Job
from disqued.testing.cluster import Cluster
from federation.moving import added, jobs_at, length_at, needjobs, received, waiting, yourjobs
from replication.adding import adding, id_of
from support.stories import tell


def test_moving_a_job_does_not_extend_its_time_to_live(pair: Cluster) -> None:
    first, second = pair.members
    added_ms = pair.network.now_ms
    added(first, "RETRY", 0, "TTL", 60)
    here, there = first, second
    for _ in range(20):
        tell(here, needjobs(there.node.state.bus, b"mail", 1))
        pair.until(lambda: length_at(there) == 1, within_s=1)  # noqa: B023 - called within the turn
        here, there = there, here
    pair.until(lambda: jobs_at(here) + jobs_at(there) == 0, within_s=120)
    assert pair.network.now_ms - added_ms <= 62_000


def test_job_that_arrives_after_its_acknowledgement_is_not_delivered(cluster: Cluster) -> None:
    first, second, third = cluster.members
    worker = waiting(third)
    job = Job(b"D-0123abcd-AAAAAAAAAAAAAAAAAAAAAAAA-05a1", b"mail", b"body", 1_800_000_000_000_000_000, 0, 0, 60, 2)
    tell(third, first.node.state.bus.about_job(kinds.SETACK, job.id, 2))
    tell(third, yourjobs(second.node.state.bus, job, holder=second.id))
    cluster.run(milliseconds=10)
    assert received(worker) == []
    assert [message.receiver for message in cluster.sent("SETREC", by=third)] == [second], "it ended, nobody knows how"
    assert jobs_at(third) == 0, "nobody else knows of it"


def test_a_job_that_moved_is_delivered_although_another_holder_has_not_heard_yet_that_it_is_queued(
    cluster: Cluster,
) -> None:
    """Messages of two nodes can arrive in any order: that of the new holder came before the one of its source."""
    source = cluster.members[0]
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 2, "RETRY", 300))
    assert source.admin.take("mail") == [job_id]
    assert source.admin.call("NACK", job_id, "DELAY", 3000) == 1
    cluster.run(milliseconds=10)
    (holder,) = (member for member in cluster.copies(job_id) if member is not source)
    (worker,) = (member for member in cluster.members if member not in {source, holder})
    cluster.lose("QUEUED", by=source, to=holder)
    assert source.admin.call("ENQUEUE", job_id) == 1
    assert worker.admin.take("mail") == []
    cluster.run(milliseconds=100)
    assert cluster.sent("WILLQUEUE", by=worker, to=holder)
    assert worker.admin.take("mail") == [job_id]
