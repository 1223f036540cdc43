"""Faults that the simulator found, each told as the story of what happened."""

from __future__ import annotations

import pytest

from disqued.testing.cluster import Cluster


@pytest.fixture
def pair() -> Cluster:
    return Cluster(2)


def add_delayed(pair: Cluster) -> bytes:
    """A job of both nodes that is queued a second later, and again by either five seconds after that."""
    creator = pair.members[0].admin
    creator.send("ADDJOB", "mail", b"body", 0, "REPLICATE", 2, "RETRY", 5, "DELAY", 1)
    pair.run(milliseconds=10)
    job = creator.next_reply()
    assert isinstance(job, bytes)
    return job


def test_a_job_that_is_queued_late_for_the_first_time_is_announced_and_not_counted(pair: Cluster) -> None:
    """Seed 1060: its queue was paused when its delay was over, and both holders queued it when the pause ended."""
    creator, holder = pair.members
    job = add_delayed(pair)
    creator.admin.call("PAUSE", "mail", "in")
    pair.run(seconds=5.6)
    assert pair.copies(job, "queued") == []
    assert creator.admin.call("ENQUEUE", job) == 1
    pair.run(seconds=3)
    assert pair.copies(job, "queued") == [creator]
    assert creator.admin.show(job)["additional-deliveries"] == holder.admin.show(job)["additional-deliveries"] == 0
    assert [sent.frame.message_flags for sent in pair.sent("QUEUED")] == [0]


def test_a_job_that_is_queued_in_time_for_the_first_time_is_not_announced(pair: Cluster) -> None:
    creator, _ = pair.members
    add_delayed(pair)
    pair.run(seconds=2)
    assert creator.admin.stat("mail")["len"] == 1
    assert pair.sent("QUEUED") == []
