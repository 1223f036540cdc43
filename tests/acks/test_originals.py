"""Acknowledgements with nodes of the original, which get no messages that they misunderstand or that crash them."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.bus.writer import FrameWriter
from disqued.testing.cluster import Cluster, Member
from support.stories import added, as_original, drop_job_messages, job_at, job_messages, tell


@pytest.fixture
def mixed() -> tuple[Cluster, FrameWriter]:
    """A cluster whose third member is an original, and the frames that it would write."""
    cluster = Cluster(3, meet=False)
    as_original(cluster.members[2])
    cluster.meet()
    original = as_original(cluster.members[2])
    cluster.run(seconds=3)
    cluster.forget_sent()
    for member in cluster.members[:2]:
        assert member.node.state.view.peers[cluster.members[2].id].features == 0
    return cluster, original


def sizes(cluster: Cluster, to: Member) -> list[int]:
    """The numbers of holders in the SETACK messages to a member."""
    return [int(sent.frame.aux) for sent in cluster.sent("SETACK", to=to)]


def test_setack_to_an_original_still_counts_a_forgotten_node(mixed: tuple[Cluster, FrameWriter]) -> None:
    cluster, _ = mixed
    first, second, third = cluster.members
    job = added(cluster, "REPLICATE", 3, "RETRY", 60)
    drop_job_messages(cluster, third)
    second.crash()
    first.admin.call("CLUSTER", "FORGET", second.id)
    first.admin.call("ACKJOB", job)
    assert sizes(cluster, third) == [3]


def test_original_that_lists_only_itself_gets_willqueue_before_setack(mixed: tuple[Cluster, FrameWriter]) -> None:
    cluster, original = mixed
    first, second, third = cluster.members
    job = added(cluster, "REPLICATE", 1, "RETRY", 60)
    drop_job_messages(cluster, third)
    kept = job_at(first, job)
    kept.delivered = (third.id, first.id, second.id)  # the original created it, and it arrived through the second
    first.admin.call("ACKJOB", job)
    assert job_messages(cluster, to=third) == ["WILLQUEUE", "SETACK"]
    assert job_messages(cluster, to=second) == ["SETACK"]
    tell(first, original.about_job(kinds.SETACK, job, 1))
    tell(first, original.about_job(kinds.GOTACK, job, 1))
    cluster.run(milliseconds=5)
    assert job_messages(cluster, to=third) == ["WILLQUEUE", "SETACK", "DELJOB"]


def test_original_gets_no_willqueue_for_a_replicated_job(mixed: tuple[Cluster, FrameWriter]) -> None:
    cluster, _ = mixed
    first, _, third = cluster.members
    job = added(cluster, "REPLICATE", 3, "RETRY", 60)
    first.admin.call("ACKJOB", job)
    cluster.run(milliseconds=10)
    assert job_messages(cluster, to=third) == ["SETACK", "DELJOB"]
    assert cluster.copies(job) == []


def test_importer_that_no_holder_lists_gets_deljob(mixed: tuple[Cluster, FrameWriter]) -> None:
    cluster, original = mixed
    first, second, third = cluster.members
    job = added(cluster, "REPLICATE", 3, "RETRY", 60)
    third.admin.call("DELJOB", job)
    for member in (first, second):
        job_at(member, job).delivered = (first.id, second.id)
    tell(first, original.about_job(kinds.SETACK, job, 2))
    cluster.run(milliseconds=10)
    assert sizes(cluster, second) == [3]
    assert "GOTACK" not in job_messages(cluster, by=first, to=third)
    assert cluster.copies(job) == []
    assert "DELJOB" in job_messages(cluster, by=first, to=third)
