"""ENQUEUE from another node, which placed the copies of a job and keeps none: the receiver queues the job."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.core.jobs.job import Job
from disqued.testing.cluster import Cluster, Member
from support.stories import added, job_messages, tell


def copy_of(cluster: Cluster, *, retry_s: int = 60, delay_s: int = 0) -> bytes:
    """Create a job of the first member that only the second has, never queued; returns the ID."""
    first, second = cluster.members
    state = first.node.state
    job_id = state.job_ids.make(3600, retry_s > 0)
    job = Job(job_id, b"mail", b"body", state.now_ms * 10**6, second.now_ms // 1000 + 3600, delay_s, retry_s, 1)
    job.delivered = second.node.state.holders.keep((second.id,))
    second.node.state.lifecycle.keep_copy(job, second.now_ms)
    return job_id


def enqueue(cluster: Cluster, job_id: bytes, delay_s: int = 0) -> Member:
    """Send ENQUEUE from the first member to the second, which is returned."""
    first, second = cluster.members
    tell(second, first.node.state.bus.about_job(kinds.ENQUEUE, job_id, delay_s))
    return second


@pytest.mark.parametrize("retry_s", [60, 0])
def test_enqueue_message_queues_the_job_without_further_messages(pair: Cluster, retry_s: int) -> None:
    job = copy_of(pair, retry_s=retry_s)
    second = enqueue(pair, job)
    assert second.admin.show(job)["additional-deliveries"] == 0
    assert second.admin.take("mail") == [job]
    assert job_messages(pair) == []


@pytest.mark.parametrize("retry_s", [60, 0])
def test_delay_counts_from_the_enqueue_message(pair: Cluster, retry_s: int) -> None:
    job = copy_of(pair, retry_s=retry_s, delay_s=5)
    second = enqueue(pair, job, 5)
    pair.run(seconds=4.9)
    assert second.admin.take("mail") == []
    pair.run(seconds=0.2)
    assert second.admin.show(job)["additional-deliveries"] == 0
    assert second.admin.take("mail") == [job]
    assert "QUEUED" not in job_messages(pair)


def test_at_most_once_job_is_queued_once_for_repeated_enqueue_messages(pair: Cluster) -> None:
    job = copy_of(pair, retry_s=0)
    second = enqueue(pair, job)
    enqueue(pair, job)
    assert second.admin.stat("mail")["jobs-in"] == 1
    assert second.admin.take("mail") == [job]
    for delay_s in (0, 1):
        enqueue(pair, job, delay_s)
        pair.run(seconds=2)
        assert second.admin.take("mail") == []


def test_job_for_a_queue_paused_in_input_is_queued_after_the_pause(pair: Cluster) -> None:
    job = copy_of(pair, retry_s=3)
    pair.members[1].admin.call("PAUSE", "mail", "in")
    second = enqueue(pair, job)
    assert second.admin.call("QLEN", "mail") == 0
    second.admin.call("PAUSE", "mail", "none")
    pair.run(seconds=4)
    assert second.admin.take("mail") == [job]


def test_at_most_once_job_is_queued_despite_the_pause(pair: Cluster) -> None:
    job = copy_of(pair, retry_s=0)
    pair.members[1].admin.call("PAUSE", "mail", "in")
    assert enqueue(pair, job).admin.call("QLEN", "mail") == 1


@pytest.mark.parametrize("state", ["queued", "acked", "gone"])
def test_enqueue_message_is_ignored_in_other_states(cluster: Cluster, state: str) -> None:
    first, second, _ = cluster.members
    job = added(cluster, "REPLICATE", 3, "RETRY", 60)
    if state == "acked":
        cluster.lose("SETACK")
        first.admin.call("ACKJOB", job)
    elif state == "gone":
        first.admin.call("DELJOB", job)
    before = first.admin.show(job)
    tell(first, second.node.state.bus.about_job(kinds.ENQUEUE, job, 0))
    assert first.admin.show(job) == before
