"""A node leaves and nodes of the original stay: they only get messages of theirs, and each job is delivered once."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.bus.writer import FrameWriter
from disqued.testing.cluster import Cluster
from leaving.leaver import add, add_copied, drain, is_done, jobs_at, leave, reason, stay, until_done, work
from support.stories import added, as_original, drop_job_messages, job_messages, tell


@pytest.fixture
def mixed() -> tuple[Cluster, FrameWriter]:
    """A node of ours and an original, and a writer of the original's frames."""
    cluster = Cluster(2, meet=False)
    as_original(cluster.members[1])
    cluster.meet()
    original = as_original(cluster.members[1])
    cluster.run(seconds=3)
    cluster.forget_sent()
    assert cluster.members[0].node.state.view.peers[cluster.members[1].id].features == 0
    return cluster, original


def test_jobs_move_to_an_original_and_are_delivered_once(mixed: tuple[Cluster, FrameWriter]) -> None:
    cluster, _ = mixed
    first, second = cluster.members
    jobs = add(first, 500, "mail", "REPLICATE", 1, "RETRY", 10) + add_copied(cluster, first, 50, "REPLICATE", 2)
    jobs += add(first, 50, "late", "REPLICATE", 1, "RETRY", 10, "DELAY", 5)
    jobs += add(first, 50, "once", "REPLICATE", 1, "RETRY", 0)
    leave(first)
    until_done(cluster, first, within_s=5)
    assert work(cluster, [second], 30) == dict.fromkeys(jobs, 1)


def test_at_most_once_jobs_are_sent_in_one_message(mixed: tuple[Cluster, FrameWriter]) -> None:
    cluster, _ = mixed
    first, second = cluster.members
    (job,) = add(first, 1, "once", "REPLICATE", 1, "RETRY", 0)
    leave(first)
    cluster.run(seconds=1)
    assert [sent.kind for sent in cluster.sent(by=first, to=second) if sent.kind not in {"PING", "PONG"}] == [
        "YOURJOBS"
    ]
    assert is_done(first)
    assert drain([second]) == {job: 1}


def test_delayed_at_most_once_jobs_stay_until_they_are_due(mixed: tuple[Cluster, FrameWriter]) -> None:
    cluster, _ = mixed
    first, second = cluster.members
    (job,) = add(first, 1, "late-once", "REPLICATE", 1, "RETRY", 0, "DELAY", 5)
    leave(first)
    cluster.run(seconds=4)
    assert jobs_at(first) == 1
    assert reason(first).startswith("delayed at-most-once jobs wait")
    until_done(cluster, first, within_s=3)
    assert drain([second]) == {job: 1}


def test_a_queued_job_is_kept_until_it_is_confirmed_and_then_enqueued(mixed: tuple[Cluster, FrameWriter]) -> None:
    cluster, original = mixed
    first, second = cluster.members
    job = added(cluster, "REPLICATE", 1, "RETRY", 60)
    drop_job_messages(cluster, second)
    cluster.lose("REPLJOB", to=second)
    leave(first)
    cluster.run(milliseconds=300)
    (sent,) = cluster.sent("REPLJOB", to=second)
    assert not sent.frame.message_flags & kinds.NOREPLY
    assert jobs_at(first) == 1, "the node keeps the job until the other node has it"
    tell(first, original.about_job(kinds.GOTJOB, job))
    assert job_messages(cluster, to=second) == ["ENQUEUE"]
    assert jobs_at(first) == 0
    tell(first, original.about_job(kinds.GOTJOB, job))
    assert job_messages(cluster, to=second) == ["ENQUEUE"], "a repeated confirmation has no effect"


def test_an_unexpected_confirmation_changes_nothing(mixed: tuple[Cluster, FrameWriter]) -> None:
    cluster, original = mixed
    first, second = cluster.members
    job = added(cluster, "REPLICATE", 1, "RETRY", 60)
    drop_job_messages(cluster, second)
    cluster.lose("REPLJOB", to=second)
    tell(first, original.about_job(kinds.GOTJOB, job))
    leave(first)
    tell(first, original.about_job(kinds.GOTJOB, job))
    assert jobs_at(first) == 1
    cluster.run(milliseconds=300)
    stay(first)
    tell(first, original.about_job(kinds.GOTJOB, job))
    assert jobs_at(first) == 1
    assert job_messages(cluster, to=second) == []


def test_a_silent_node_is_asked_less_and_less_often(mixed: tuple[Cluster, FrameWriter]) -> None:
    cluster, _ = mixed
    first, second = cluster.members
    jobs = add(first, 2000, "mail", "REPLICATE", 1, "RETRY", 60)
    cluster.lose("GOTJOB")
    leave(first)
    cluster.run(seconds=10)
    asked = len(cluster.sent("REPLJOB"))
    cluster.forget_sent()
    cluster.run(seconds=60)
    assert len(cluster.sent("REPLJOB")) < min(asked, 600)
    assert jobs_at(first) == 2000
    assert "no other node takes jobs" in reason(first)
    cluster.heal()
    until_done(cluster, first, within_s=60)
    assert drain([second]) == dict.fromkeys(jobs, 1)
