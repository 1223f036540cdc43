"""Lost copies of jobs that were loaded after a crash: nobody knows then whether their lists of holders are complete."""

from __future__ import annotations

import pytest

from disqued.config import Config
from disqued.core.jobs.job import INCOMPLETE, NOBODY
from disqued.repair.room import repair_of
from disqued.testing.cluster import Cluster, Member
from repair.losing import add, copies, rebuilt, short
from support.stories import job_at


def with_file() -> Config:
    config = Config()
    config.appendonly = True
    return config


@pytest.fixture
def five() -> Cluster:
    """Five nodes that keep append-only files."""
    cluster = Cluster(5, config=with_file)
    cluster.run(seconds=2)
    return cluster


def crash(cluster: Cluster, members: list[Member]) -> None:
    """Have members crash at once, and start again with their files."""
    cluster.run(seconds=5)
    for member in members:
        member.crash()
    for member in members:
        member.restart()
    cluster.until(cluster.is_whole, within_s=60)


def lose(member: Member) -> None:
    """Have a member come back with an empty file."""
    member.crash()
    member.host.disk.put("disque.aof", b"")
    member.restart()


@pytest.mark.parametrize(("retry_s", "later_s"), [(10, 3), (10, 60), (300, 400)])
@pytest.mark.parametrize("crashed", [1, 5])
def test_copies_are_made_again_at_once_although_lists_may_be_incomplete(
    five: Cluster, retry_s: int, later_s: int, crashed: int
) -> None:
    """When a node sends something about such a job, it adds all members to the list, which then looks complete."""
    jobs = add(five, five.members[0], 40, "REPLICATE", 3, "RETRY", retry_s)
    crash(five, five.members[:crashed])
    assert job_at(five.members[0], jobs[0]).flags & INCOMPLETE
    five.run(seconds=later_s)
    lost = sum(five.members[1] in five.copies(job_id) for job_id in jobs)
    lose(five.members[1])
    five.run(seconds=5)
    assert copies(five, jobs) == {3}
    assert sum(rebuilt(five).values()) == lost
    assert short(five) == 0


@pytest.mark.slow
@pytest.mark.parametrize("retry_s", [10, 300])
def test_nothing_is_copied_if_all_nodes_come_back_with_their_jobs(five: Cluster, retry_s: int) -> None:
    jobs = add(five, five.members[0], 100, "REPLICATE", 3, "RETRY", retry_s)
    crash(five, five.members)
    five.run(seconds=700)
    assert copies(five, jobs) == {3}
    assert rebuilt(five) == {}
    five.forget_sent()
    five.run(seconds=650)
    assert len(five.sent("DIGEST")) >= 10
    assert not five.sent("CELL"), "the nodes know by now which jobs the others do not have"


def test_finished_jobs_leave_nothing(five: Cluster) -> None:
    jobs = add(five, five.members[0], 10, "REPLICATE", 3, "RETRY", 10)
    crash(five, five.members)
    five.run(seconds=60)
    holders = [repair_of(member.node.state).liveness.absent for member in five.members]
    assert any(absent.of(job_id) for absent in holders for job_id in jobs)
    for member in five.members:
        ids = member.admin.take("mail", count=100)
        member.admin.call("ACKJOB", *ids) if ids else None
    five.run(seconds=60)
    assert copies(five, jobs) == {0}
    assert all(absent.of(job_id) == NOBODY for absent in holders for job_id in jobs)


@pytest.mark.slow
def test_a_member_that_turns_out_to_have_a_job_counts_again(five: Cluster) -> None:
    first = five.members[0]
    (job_id,) = add(five, first, 1, "REPLICATE", 3, "RETRY", 3000)
    crash(five, five.members)
    five.run(seconds=60)
    job = job_at(first, job_id)
    absent = repair_of(first.node.state).liveness.absent
    (other, *_) = [member for member in five.copies(job_id) if member is not first]
    absent.add(job, (other.id,))
    assert not absent.may_have(job, other.id)
    five.run(seconds=700)
    assert absent.may_have(job, other.id)
