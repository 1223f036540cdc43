"""A node leaves for nodes of the original: they get only what they understand, and nothing is lost or doubled."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.bus.writer import FrameWriter
from disqued.testing.cluster import Cluster
from leaving.handing import add, add_copied, drain, is_done, jobs_at, leave, reason, stay, until_done, work
from support.stories import added, deaf, disguise, talk, tell


@pytest.fixture
def mixed() -> tuple[Cluster, FrameWriter]:
    """A node of ours and an original, and the frames that this one would write."""
    cluster = Cluster(2, meet=False)
    disguise(cluster.members[1])
    cluster.meet()
    original = disguise(cluster.members[1])
    cluster.run(seconds=3)
    cluster.forget_sent()
    assert cluster.members[0].node.state.view.peers[cluster.members[1].id].features == 0
    return cluster, original


def test_jobs_go_there_and_are_delivered_once(mixed: tuple[Cluster, FrameWriter]) -> None:
    cluster, _ = mixed
    first, second = cluster.members
    jobs = add(first, 500, "mail", "REPLICATE", 1, "RETRY", 10) + add_copied(cluster, first, 50, "REPLICATE", 2)
    jobs += add(first, 50, "late", "REPLICATE", 1, "RETRY", 10, "DELAY", 5)
    jobs += add(first, 50, "once", "REPLICATE", 1, "RETRY", 0)
    leave(first)
    until_done(cluster, first, within_s=5)
    assert work(cluster, [second], 30) == dict.fromkeys(jobs, 1)


def test_at_most_once_jobs_go_in_one_message(mixed: tuple[Cluster, FrameWriter]) -> None:
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


def test_delayed_at_most_once_jobs_wait_until_they_are_due(mixed: tuple[Cluster, FrameWriter]) -> None:
    cluster, _ = mixed
    first, second = cluster.members
    (job,) = add(first, 1, "late-once", "REPLICATE", 1, "RETRY", 0, "DELAY", 5)
    leave(first)
    cluster.run(seconds=4)
    assert jobs_at(first) == 1
    assert reason(first).startswith("delayed at-most-once jobs wait")
    until_done(cluster, first, within_s=3)
    assert drain([second]) == {job: 1}


def test_the_talk_about_a_queued_job(mixed: tuple[Cluster, FrameWriter]) -> None:
    cluster, original = mixed
    first, second = cluster.members
    job = added(cluster, "REPLICATE", 1, "RETRY", 60)
    deaf(cluster, second)
    cluster.lose("REPLJOB", to=second)
    leave(first)
    cluster.run(milliseconds=300)
    (offer,) = cluster.sent("REPLJOB", to=second)
    assert not offer.frame.message_flags & kinds.NOREPLY
    assert jobs_at(first) == 1, "it is ours until the other node has it"
    tell(first, original.about_job(kinds.GOTJOB, job))
    assert talk(cluster, to=second) == ["ENQUEUE"]
    assert jobs_at(first) == 0
    tell(first, original.about_job(kinds.GOTJOB, job))
    assert talk(cluster, to=second) == ["ENQUEUE"], "said again, it is about nothing"


def test_a_confirmation_that_nobody_asked_for_changes_nothing(mixed: tuple[Cluster, FrameWriter]) -> None:
    cluster, original = mixed
    first, second = cluster.members
    job = added(cluster, "REPLICATE", 1, "RETRY", 60)
    deaf(cluster, second)
    cluster.lose("REPLJOB", to=second)
    tell(first, original.about_job(kinds.GOTJOB, job))
    leave(first)
    tell(first, original.about_job(kinds.GOTJOB, job))
    assert jobs_at(first) == 1
    cluster.run(milliseconds=300)
    stay(first)
    tell(first, original.about_job(kinds.GOTJOB, job))
    assert jobs_at(first) == 1
    assert talk(cluster, to=second) == []


def test_a_node_that_says_nothing_is_asked_again_less_and_less(mixed: tuple[Cluster, FrameWriter]) -> None:
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
