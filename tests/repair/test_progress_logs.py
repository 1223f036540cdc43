"""Progress logs (LOGJOB) reach the nodes that get a copy of their job by repair."""

from __future__ import annotations

from disqued.testing.cluster import Cluster, Member
from progress.test_holders import add, lines, log, read
from progress.test_log import CLAIM
from repair.losing import is_whole
from support.fixtures import settled


def logged(cluster: Cluster, copies: int) -> bytes:
    """Add a job at the first member, and two entries to its log, which all holders have."""
    first = cluster.members[0]
    job_id = add(cluster, copies)
    log(cluster, first, job_id, 0, "begun", "COPIES", copies)
    log(cluster, first, job_id, 1, "half", "COPIES", copies)
    return job_id


def newcomer(cluster: Cluster, job_id: bytes) -> Member:
    """Have the other holder lose its jobs; returns the node that has the new copy as soon as nodes say all is done."""
    first = cluster.members[0]
    (lost,) = [member for member in cluster.copies(job_id) if member is not first]
    lost.restart()
    cluster.run(seconds=1)
    cluster.until(lambda: is_whole(cluster), within_s=30)
    (got,) = [member for member in cluster.copies(job_id) if member is not first]
    return got


def test_the_new_copy_of_a_job_has_its_log_at_once() -> None:
    """A rollout continues as soon as no copy is missing, and may stop the last node that has the log."""
    cluster = settled(3)
    job_id = logged(cluster, 2)
    got = newcomer(cluster, job_id)
    cluster.run(milliseconds=50)
    assert lines(got, job_id) == [0, 1]


def test_five_nodes_without_files_that_restart_one_after_the_other_keep_a_log() -> None:
    cluster = settled(5)
    job_id = logged(cluster, 2)
    for member in [*cluster.members, *cluster.members]:
        member.restart()
        cluster.run(seconds=1)
        cluster.until(lambda: is_whole(cluster), within_s=30)
        cluster.run(milliseconds=50)
    (one, *_) = cluster.copies(job_id)
    assert read(cluster, one, job_id) == [(CLAIM, 0, b"begun"), (CLAIM, 1, b"half")]


def test_a_log_whose_messages_are_lost_follows_later() -> None:
    cluster = settled(3)
    job_id = logged(cluster, 2)
    cluster.lose("LOGENTRY")
    got = newcomer(cluster, job_id)
    cluster.run(seconds=1)
    assert lines(got, job_id) == []
    cluster.heal()
    cluster.run(seconds=5)
    assert lines(got, job_id) == [0, 1]
