"""A job whose only copy two nodes sent to different homes, because they did not reach the same nodes."""

from __future__ import annotations

from disqued.core.cluster.rendezvous import ranked
from disqued.testing.cluster import Cluster, Member
from replication.adding import adding, holders, id_of
from support.fixtures import settled


def cut_from_best_home(cluster: Cluster) -> tuple[list[Member], int]:
    """Members, the best home of a job first, and the number of the job. The third does not reach the first."""
    by_id = {member.id: member for member in cluster.members}
    number = 1
    order = [by_id[node_id] for node_id in ranked(b"D-00000000-%024d-05a1" % number, list(by_id))]
    best, _, third, _ = order
    cluster.cut(best, third)
    cluster.cut(third, best)
    cluster.run(seconds=40)
    return order, number


def add(cluster: Cluster, by: Member, number: int) -> bytes:
    """Add the job with one copy; returns its ID a moment later."""
    options = ("REPLICATE", 1, "RETRY", 300, "ID", f"{number:024d}")
    job_id = id_of(cluster, adding(cluster, *options, timeout_ms=1000, by=by.number))
    cluster.run(milliseconds=20)
    return job_id


def check_that_they_met(cluster: Cluster, job_id: bytes, best: Member, following: Member) -> None:
    """One of the homes has the job queued, and each knows the other one."""
    assert set(cluster.copies(job_id)) == {best, following}
    assert len(cluster.copies(job_id, "queued")) == 1
    assert holders(best, job_id) == holders(following, job_id) == {best.id, following.id}


def test_best_home_asks_the_one_that_follows() -> None:
    """Seed 3502, "membership": nobody knew both homes, and both had the job queued for as long as it lived."""
    cluster = settled(4)
    (best, following, third, last), number = cut_from_best_home(cluster)
    job_id = add(cluster, third, number)
    assert cluster.copies(job_id) == [following]
    assert add(cluster, last, number) == job_id
    check_that_they_met(cluster, job_id, best, following)


def test_home_that_follows_asks_the_best_one() -> None:
    cluster = settled(4)
    (best, following, third, last), number = cut_from_best_home(cluster)
    job_id = add(cluster, last, number)
    assert cluster.copies(job_id) == [best]
    assert add(cluster, third, number) == job_id
    check_that_they_met(cluster, job_id, best, following)


def test_best_home_asks_also_if_it_adds_the_job_itself() -> None:
    cluster = settled(4)
    (best, following, third, _), number = cut_from_best_home(cluster)
    job_id = add(cluster, third, number)
    assert add(cluster, best, number) == job_id
    check_that_they_met(cluster, job_id, best, following)


def test_nobody_asks_about_a_job_whose_homes_all_have_it() -> None:
    cluster = settled(4)
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 2, "RETRY", 300, "ID", f"{7:024d}", timeout_ms=1000))
    cluster.run(seconds=1)
    assert len(cluster.copies(job_id)) == 2
    assert cluster.sent("WILLQUEUE") == []
