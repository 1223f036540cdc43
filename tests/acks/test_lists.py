"""The acknowledgements of one turn go to each holder in one message, and two holders need no third message."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.bus.frame import MAX_LISTED
from disqued.bus.writer import number
from disqued.testing.cluster import Cluster, Member
from support.stories import added, as_original, job_at, job_messages, listed, tell

JOBS = 20


def frames(cluster: Cluster) -> list[tuple[str, int]]:
    """The messages of lists that were sent: their types and how many jobs each has."""
    return [(sent.kind, len(listed(sent.frame))) for sent in cluster.sent() if sent.frame.kind in kinds.LISTS.values()]


def moved(cluster: Cluster, *options: str | int) -> tuple[Member, Member, bytes]:
    """A job that moved from the first member to a worker of the second one."""
    first, second = cluster.members[:2]
    job = first.admin.add("mail", "body", "REPLICATE", 1, *options)
    worker = second.client()
    worker.send("GETJOB", "FROM", "mail")
    cluster.until(lambda: not worker.silent, within_s=1)
    cluster.forget_sent()
    return first, second, job


def test_jobs_acknowledged_by_one_command_take_one_message_of_a_type_for_each_holder(cluster: Cluster) -> None:
    jobs = [added(cluster, "REPLICATE", 3, "RETRY", 60) for _ in range(JOBS)]
    cluster.members[0].admin.call("ACKJOB", *jobs)
    cluster.run(milliseconds=10)
    assert frames(cluster) == [(kind, JOBS) for kind in ("SETACKS", "GOTACKS", "DELJOBS") for _ in range(2)]
    assert job_messages(cluster) == []
    assert [job for job in jobs if cluster.copies(job)] == []


def test_fast_acknowledgements_of_one_command_take_one_message_for_each_holder(cluster: Cluster) -> None:
    jobs = [added(cluster, "REPLICATE", 3, "RETRY", 60) for _ in range(JOBS)]
    cluster.members[0].admin.call("FASTACK", *jobs)
    cluster.run(milliseconds=10)
    assert frames(cluster) == [("DELJOBS", JOBS), ("DELJOBS", JOBS)]
    assert [job for job in jobs if cluster.copies(job)] == []


def test_list_of_too_many_jobs_for_a_message_is_sent_in_parts(pair: Cluster) -> None:
    first, second = pair.members
    *most, last = [b"D-0123abcd-%024d-05a1" % at for at in range(MAX_LISTED + 1)]
    writer = second.node.state.bus
    parts = [part for job in most for part in (job, number(2))]
    tell(first, writer.about_jobs(kinds.SETACK, parts) + writer.about_job(kinds.SETACK, last, 2))
    assert frames(pair) == [("GOTACKS", MAX_LISTED)]
    assert job_messages(pair) == ["GOTACK"]


def test_nodes_without_the_feature_get_a_message_for_each_job(pair: Cluster) -> None:
    first, second = pair.members
    jobs = [added(pair, "REPLICATE", 2, "RETRY", 60) for _ in range(3)]
    as_original(second)
    peer = first.node.state.view.peers[second.id]
    peer.features &= ~kinds.FEATURE_LISTS
    first.admin.call("ACKJOB", *jobs)
    assert frames(pair) == []
    assert job_messages(pair, to=second) == ["SETACK"] * 3


def test_the_only_other_holder_of_a_done_job_drops_it_at_once(pair: Cluster) -> None:
    first, second, job = moved(pair, "RETRY", 60)
    second.admin.call("ACKJOB", job)
    pair.run(milliseconds=2)
    assert pair.copies(job, "acked") == [second], "its confirmation waits for other output"
    pair.run(milliseconds=200)
    assert job_messages(pair) == ["SETACK", "GOTACK"]
    assert pair.sent("GOTACK", by=first)[0].frame.aux == kinds.DROPPED
    assert pair.copies(job) == []


def test_confirmations_of_dropped_jobs_leave_with_the_next_jobs(pair: Cluster) -> None:
    first, second, job = moved(pair, "RETRY", 60)
    second.client().send("GETJOB", "FROM", "mail")
    second.admin.call("ACKJOB", job)
    pair.run(milliseconds=1)
    first.admin.add("mail", "body", "REPLICATE", 1)
    assert [sent.kind for sent in pair.sent(by=first)] == ["YOURJOBS", "GOTACK"]


def test_confirmations_of_dropped_jobs_leave_before_the_node_ends(pair: Cluster) -> None:
    first, second, job = moved(pair, "RETRY", 60)
    second.admin.call("ACKJOB", job)
    pair.run(milliseconds=1)
    assert first.node.end(first.now_ms)
    first.flush()
    assert [sent.kind for sent in pair.sent(by=first)] == ["GOTACK"]


def test_dropped_job_is_confirmed_again_when_the_first_confirmation_was_lost(pair: Cluster) -> None:
    _, second, job = moved(pair, "RETRY", 60)
    pair.lose("GOTACK", count=1)
    second.admin.call("ACKJOB", job)
    pair.run(milliseconds=200)
    assert pair.copies(job, "acked") == [second]
    pair.run(seconds=2)
    assert pair.copies(job) == []


def test_lost_acknowledgement_of_a_moved_job_is_sent_again(pair: Cluster) -> None:
    first, second, job = moved(pair, "RETRY", 60)
    pair.lose("SETACK", count=1)
    second.admin.call("ACKJOB", job)
    pair.run(milliseconds=100)
    assert pair.copies(job) == [first, second]
    pair.run(seconds=2)
    assert pair.copies(job) == []


def test_holder_that_knows_a_third_one_does_not_drop_the_job(cluster: Cluster) -> None:
    first, second, job = moved(cluster, "RETRY", 60)
    third = cluster.members[2]
    kept = job_at(first, job)
    kept.delivered = (*(kept.delivered or ()), third.id)
    cluster.lose("SETACK", to=third)
    second.admin.call("ACKJOB", job)
    cluster.run(milliseconds=100)
    assert cluster.copies(job, "acked") == [first, second]
    cluster.heal()
    cluster.run(seconds=5)
    assert cluster.copies(job) == []


def test_holder_that_learned_of_a_third_one_keeps_the_job_until_that_one_knows(cluster: Cluster) -> None:
    first, second, job = moved(cluster, "RETRY", 60)
    third = cluster.members[2]
    cluster.lose("GOTACK", by=first, count=1)
    second.admin.call("ACKJOB", job)
    cluster.run(milliseconds=10)
    kept = job_at(second, job)
    kept.delivered = (*(kept.delivered or ()), third.id)
    tell(second, first.node.state.bus.about_job(kinds.GOTACK, job, kinds.DROPPED))
    assert cluster.copies(job) == [second]
    cluster.run(seconds=5)
    assert cluster.copies(job) == []


@pytest.mark.parametrize("kind", sorted(kinds.LISTS))
def test_list_with_words_that_are_no_job_ids_has_no_effect(pair: Cluster, kind: int) -> None:
    first, second = pair.members
    job = added(pair, "REPLICATE", 2, "RETRY", 60)
    tell(first, second.node.state.bus.about_jobs(kind, [bytes(40), number(2), b"x" * 40, number(0)]))
    assert frames(pair) == []
    assert job_messages(pair) == []
    assert pair.copies(job) == [first, second]
