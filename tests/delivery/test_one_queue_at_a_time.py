"""WILLQUEUE and QUEUED: the holders of a job coordinate its requeue, so that only one of them queues it."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.core.jobs.job import MAX_COUNTER
from disqued.core.jobs.jobid import JobIds
from disqued.delivery.counters import DUPLICATE_ENQUEUES_DROPPED, REQUEUES_PREVENTED
from disqued.delivery.queued import precedes
from disqued.testing.cluster import Cluster, Member
from disqued.testing.host import FakeHost
from support.stories import added, job_at, job_messages, tell, without_job

REPLICATED = ("REPLICATE", 3, "RETRY", 5, "TTL", 3600)


def queues(cluster: Cluster) -> list[object]:
    """How many jobs wait in the queue of each running member."""
    return [member.admin.call("QLEN", "mail") for member in cluster.members if member.running]


def deliveries(member: Member, job_id: bytes) -> tuple[object, object]:
    shown = member.admin.show(job_id)
    return shown["nacks"], shown["additional-deliveries"]


def test_job_that_waits_for_a_worker_stays_in_one_queue(cluster: Cluster) -> None:
    first = cluster.members[0]
    job = added(cluster, *REPLICATED)
    for _ in range(200):
        cluster.run(milliseconds=500)
        assert queues(cluster) == [1, 0, 0]
    assert first.admin.stat("mail")["jobs-in"] == 1
    assert [deliveries(member, job) for member in cluster.members] == [(0, 0)] * 3
    assert set(job_messages(cluster)) == {"WILLQUEUE", "QUEUED"}
    assert first.node.state.counters.value(REQUEUES_PREVENTED) > 10


def test_the_copies_do_not_drift_towards_the_moment_of_delivery(cluster: Cluster) -> None:
    first = cluster.members[0]
    job = added(cluster, *REPLICATED)
    for _ in range(40):
        cluster.run(seconds=2.5)
        next_ms = [job_at(member, job).requeue_at_ms - member.now_ms for member in cluster.members]
        assert min(next_ms) > next_ms[0] - 1000
    assert first.admin.take("mail") == [job]


def test_unacknowledged_job_is_requeued_on_one_node_and_counted_by_all(cluster: Cluster) -> None:
    first = cluster.members[0]
    job = added(cluster, *REPLICATED)
    assert first.admin.take("mail") == [job]
    cluster.run(seconds=5.6)
    assert sorted(map(str, queues(cluster))) == ["0", "0", "1"]
    assert [deliveries(member, job) for member in cluster.members] == [(0, 1)] * 3
    assert {int(sent.frame.message_flags) for sent in cluster.sent("QUEUED")} == {kinds.INCR_DELIVERIES}


def test_holders_send_willqueue_half_a_second_before_requeueing(cluster: Cluster) -> None:
    first = cluster.members[0]
    job = added(cluster, *REPLICATED)
    first.admin.take("mail")
    due_ms = {member: job_at(member, job).requeue_at_ms for member in cluster.members}
    cluster.run(seconds=4.7)
    for sent in cluster.sent("WILLQUEUE"):
        assert 0 <= sent.at_ms - (due_ms[sent.sender] - 500) <= 16  # type: ignore[index]
    assert job_messages(cluster).count("WILLQUEUE") >= 2


def test_holder_learns_that_the_job_is_done_when_its_copy_asks(cluster: Cluster) -> None:
    first = cluster.members[0]
    job = added(cluster, *REPLICATED)
    first.admin.take("mail")
    cluster.lose("SETACK")
    first.admin.call("ACKJOB", job)
    cluster.run(seconds=4)
    cluster.network.filters.clear()
    cluster.run(seconds=20)
    assert cluster.copies(job) == []
    assert "QUEUED" not in job_messages(cluster)


def test_job_is_requeued_by_another_holder_when_its_node_dies(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job = added(cluster, *REPLICATED)
    first.crash()
    cluster.run(seconds=5.6)
    assert sorted(map(str, queues(cluster))) == ["0", "1"]
    (holder,) = [member for member in (second, third) if member.admin.call("QLEN", "mail") == 1]
    assert holder.admin.take("mail") == [job]
    assert holder.admin.call("ACKJOB", job) == 1
    assert deliveries_left(cluster, job) == 0


def deliveries_left(cluster: Cluster, job: bytes) -> int:
    """How often the job is delivered within the next 30 seconds."""
    count = 0
    for _ in range(60):
        cluster.run(milliseconds=500)
        count += sum(job in member.admin.take("mail", count=9) for member in cluster.members if member.running)
    return count


def test_job_queued_in_every_partition_stays_in_one_queue_after_healing(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job = added(cluster, *REPLICATED)
    cluster.partition([first], [second], [third])
    cluster.run(seconds=8)
    assert queues(cluster) == [1, 1, 1]
    cluster.heal()
    cluster.run(seconds=20)
    winner = max(cluster.members, key=lambda one: sum(precedes(job, one.id, other.id) for other in cluster.members))
    assert cluster.copies(job, "queued") == [winner]
    assert sum(int(member.node.state.counters.value(DUPLICATE_ENQUEUES_DROPPED)) for member in cluster.members) == 2


@pytest.mark.parametrize("seed", range(8))
def test_both_nodes_resolve_a_duplicate_enqueue_the_same_way(seed: int) -> None:
    cluster = Cluster(2, meet=False)
    for member in cluster.members:
        member.node.state.job_ids = JobIds(member.id, FakeHost(seed=seed).random_bytes)
    cluster.meet()
    first, second = cluster.members
    job = added(cluster, "REPLICATE", 2, "RETRY", 60)
    assert second.admin.call("ENQUEUE", job) == 1
    assert queues(cluster) == [1, 1]
    first.admin.call("DEQUEUE", job)
    first.admin.call("ENQUEUE", job)
    cluster.run(milliseconds=5)
    winner = first if precedes(job, first.id, second.id) else second
    assert cluster.copies(job, "queued") == [winner]


def test_nack_is_counted_by_all_and_postpones_their_requeue(cluster: Cluster) -> None:
    first = cluster.members[0]
    job = added(cluster, *REPLICATED)
    first.admin.take("mail")
    cluster.run(seconds=3)
    assert first.admin.call("NACK", job) == 1
    cluster.run(milliseconds=5)
    assert [deliveries(member, job) for member in cluster.members] == [(1, 0)] * 3
    assert {int(sent.frame.message_flags) for sent in cluster.sent("QUEUED")} == {kinds.INCR_NACKS}
    for member in cluster.members:
        assert job_at(member, job).requeue_at_ms - member.now_ms > 4700


def test_enqueue_is_counted_by_all_as_an_additional_delivery(cluster: Cluster) -> None:
    second = cluster.members[1]
    job = added(cluster, *REPLICATED)
    cluster.members[0].admin.take("mail")
    assert second.admin.call("ENQUEUE", job) == 1
    cluster.run(milliseconds=5)
    assert [deliveries(member, job) for member in cluster.members] == [(0, 1)] * 3
    assert cluster.copies(job, "queued") == [second]


def test_counters_stay_at_the_highest_value_that_the_wire_carries(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job = added(cluster, *REPLICATED)
    kept = job_at(first, job)
    kept.nacks = kept.additional_deliveries = MAX_COUNTER - 1
    for _ in range(3):
        tell(first, second.node.state.bus.about_job(kinds.QUEUED, job, 0, kinds.INCR_NACKS | kinds.INCR_DELIVERIES))
    assert deliveries(first, job) == (MAX_COUNTER, MAX_COUNTER)


def test_sender_of_a_job_message_is_added_to_the_holders(cluster: Cluster) -> None:
    job = added(cluster, "REPLICATE", 2, "RETRY", 60)
    outsider = without_job(cluster, job)
    first = cluster.members[0]
    for kind in (kinds.WILLQUEUE, kinds.QUEUED, kinds.WORKING):
        job_at(first, job).delivered = None
        tell(first, outsider.node.state.bus.about_job(kind, job))
        assert first.admin.show(job)["nodes-delivered"] == [first.id, outsider.id]


@pytest.mark.parametrize("kind", [kinds.WILLQUEUE, kinds.QUEUED, kinds.WORKING])
def test_sender_that_does_not_know_that_the_job_is_done_gets_setack(cluster: Cluster, kind: int) -> None:
    first, second, _ = cluster.members
    job = added(cluster, *REPLICATED)
    cluster.lose("SETACK")
    first.admin.call("ACKJOB", job)
    cluster.forget_sent()
    tell(first, second.node.state.bus.about_job(kind, job))
    assert job_messages(cluster) == ["SETACK"]
    assert [(sent.receiver, int(sent.frame.aux)) for sent in cluster.sent("SETACK")] == [(second, 3)]


def test_no_willqueue_is_sent_over_a_congested_link(cluster: Cluster) -> None:
    first, second, third = cluster.members
    first.admin.call("DEQUEUE", added(cluster, *REPLICATED))
    link = first.node.state.view.peers[second.id].link
    assert link is not None
    link.congested = True
    cluster.run(seconds=4.8)
    assert job_messages(cluster, by=first, to=second) == []
    assert "WILLQUEUE" in job_messages(cluster, by=first, to=third)


def test_job_with_one_copy_causes_no_messages(cluster: Cluster) -> None:
    first = cluster.members[0]
    job = added(cluster, "REPLICATE", 1, "RETRY", 1)
    for command in ("WORKING", "NACK", "ENQUEUE", "DEQUEUE"):
        first.admin.take("mail")
        first.admin.call(command, job)
    cluster.run(seconds=5)
    assert job_messages(cluster) == []


def test_working_postpones_the_requeue_on_all_holders(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job = added(cluster, *REPLICATED)
    first.admin.take("mail")
    second.admin.call("ENQUEUE", job)
    cluster.run(milliseconds=5)
    for _ in range(5):
        cluster.run(seconds=4)
        assert first.admin.call("WORKING", job) == 5
        cluster.run(milliseconds=5)
        assert queues(cluster) == [0, 0, 0]
    assert job_messages(cluster).count("WORKING") == 10


@pytest.mark.slow
@pytest.mark.parametrize("skew_s", [-3600, 0, 3600])
@pytest.mark.parametrize("ttl_s", [600, 7200])
def test_half_of_the_ttl_is_measured_right_when_the_clock_of_the_creator_is_wrong(skew_s: int, ttl_s: int) -> None:
    cluster = Cluster(2, meet=False)
    first = cluster.members[0]
    first.skew_ms = skew_s * 1000
    first.jump()
    cluster.meet()
    job = added(cluster, "REPLICATE", 2, "RETRY", 60, "TTL", ttl_s)
    cluster.run(seconds=ttl_s / 2 - 65)
    assert [member.admin.call("WORKING", job) for member in cluster.members] == [60, 60]
    cluster.run(seconds=130)
    for member in cluster.members:
        assert str(member.admin.call("WORKING", job)).startswith("TOOLATE")
