"""Acknowledgements of jobs that were loaded after a crash: the file does not name all nodes that have the job."""

from __future__ import annotations

import pytest

from disqued.config import Config
from disqued.testing.cluster import Cluster, Member
from support.stories import added

RETRY_S = 5
ONE_COPY = ("REPLICATE", 1, "RETRY", RETRY_S, "TTL", 3600)
TWO_COPIES = ("REPLICATE", 2, "RETRY", RETRY_S, "TTL", 3600)


def logging() -> Config:
    """A configuration with the append-only file on."""
    config = Config()
    config.assign("appendonly", True)
    config.assign("aof_restart_marker", True)
    return config


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(3, config=logging)
    cluster.run(seconds=1)
    return cluster


def take_at(cluster: Cluster, member: Member, queue: str = "mail") -> bytes:
    """A client that waits at a member gets a job; returns the ID."""
    worker = member.client()
    worker.send("GETJOB", "FROM", queue)
    cluster.until(lambda: not worker.silent, within_s=2)
    reply = worker.next_reply()
    assert isinstance(reply, list)
    (job,) = reply
    assert isinstance(job, list)
    assert isinstance(job[1], bytes)
    return job[1]


def crash(cluster: Cluster, *members: Member) -> None:
    """Kill the members and start them again with their files."""
    for member in members:
        member.crash()
    cluster.run(milliseconds=200)
    for member in members:
        member.restart()
    cluster.until(cluster.is_whole)


def restart_controlled(cluster: Cluster, member: Member) -> None:
    """Shut the member down, and start it again with its file and a restart marker."""
    assert member.shut_down("REWRITE-AOF") is None
    member.restart()
    cluster.until(cluster.is_whole)


def assert_over(cluster: Cluster, job: bytes) -> None:
    """No node has the job, and no worker gets it again."""
    cluster.run(seconds=1)
    assert cluster.copies(job) == []
    cluster.run(seconds=2 * RETRY_S)
    assert [member for member in cluster.members if member.admin.take("mail")] == []


def test_a_job_that_moved_before_the_crash_ends_where_it_moved(cluster: Cluster) -> None:
    """The simulator found it too (mix "logged kills", seed 3074)."""
    first, second, _ = cluster.members
    job = added(cluster, *ONE_COPY)
    assert take_at(cluster, second) == job
    crash(cluster, first)
    assert first.admin.call("ACKJOB", job) == 1
    assert_over(cluster, job)


def test_the_same_when_all_listed_holders_crashed() -> None:
    cluster = Cluster(4, config=logging)
    cluster.run(seconds=1)
    job = added(cluster, *TWO_COPIES)
    listed = cluster.copies(job)
    other = next(member for member in cluster.members if member not in listed)
    assert take_at(cluster, other) == job
    crash(cluster, *listed)
    assert listed[1].admin.call("ACKJOB", job) == 1
    assert_over(cluster, job)


def test_a_holder_that_crashed_passes_the_acknowledgement_of_another_node_on(cluster: Cluster) -> None:
    """The third node does not learn from the first one that the second one has the job, and asks only the first."""
    first, second, third = cluster.members
    job = added(cluster, *ONE_COPY)
    assert take_at(cluster, second) == job
    crash(cluster, first)
    cluster.lose("WILLQUEUE")
    cluster.cut(third, second)
    cluster.run(milliseconds=100)
    assert third.admin.call("ACKJOB", job) == 0
    assert_over(cluster, job)


def test_a_node_that_joined_during_the_crash_learns_of_the_end(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job = added(cluster, *ONE_COPY)
    assert take_at(cluster, second) == job
    first.crash()
    newcomer = cluster.add()
    newcomer.admin.call("CLUSTER", "MEET", second.ip.decode(), second.config.port)
    cluster.until(cluster.is_whole)
    second.admin.call("NACK", job)
    assert take_at(cluster, newcomer) == job
    first.restart()
    cluster.until(cluster.is_whole)
    assert first.admin.call("ACKJOB", job) == 1
    assert_over(cluster, job)


def test_what_a_node_that_crashed_gives_away_keeps_all_its_holders(cluster: Cluster) -> None:
    """The new owner of the job of a leaving node asks the node that its old one did not list."""
    first, second, third = cluster.members
    job = added(cluster, "REPLICATE", 1, "RETRY", 120, "TTL", 3600)
    assert take_at(cluster, second) == job
    crash(cluster, first)
    cluster.partition([first, third], [second])
    cluster.until(lambda: first.sees == 1)
    first.admin.call("CLUSTER", "LEAVING", "yes")
    cluster.until(lambda: first not in cluster.copies(job))
    first.crash()
    cluster.heal()
    assert third.admin.call("ACKJOB", job) == 1
    cluster.run(seconds=60)
    assert second.admin.show(job)["state"] == b"acked", "it waits for the first node"


def test_a_controlled_restart_after_the_crash_keeps_all_holders(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job = added(cluster, *ONE_COPY)
    assert take_at(cluster, second) == job
    crash(cluster, first)
    restart_controlled(cluster, first)
    assert first.admin.call("ACKJOB", job) == 1
    assert_over(cluster, job)


def test_a_job_that_is_queued_elsewhere_is_not_queued_again_after_the_crash(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job = added(cluster, *ONE_COPY)
    assert take_at(cluster, second) == job
    crash(cluster, first)
    assert second.admin.call("NACK", job) == 1
    for _ in range(3):
        cluster.run(seconds=RETRY_S)
        assert cluster.copies(job, "queued") == [second]


def test_after_a_controlled_restart_only_the_holders_are_asked(cluster: Cluster) -> None:
    first = cluster.members[0]
    job = added(cluster, *ONE_COPY)
    restart_controlled(cluster, first)
    cluster.forget_sent()
    assert first.admin.call("ACKJOB", job) == 1
    cluster.run(milliseconds=100)
    assert cluster.copies(job) == []
    assert cluster.sent("SETACK") == []
