"""A job that both sides of a partition added under one ID becomes one job again."""

from __future__ import annotations

from disqued.placing.homes import homes
from disqued.testing.cluster import Cluster
from moves.test_dead_letters import is_over
from replication.adding import adding, id_of

MIDDLE = "0123456789abcdefABCDEF+/"


def added(cluster: Cluster, by: int, *options: str | int, number: int = 0) -> bytes:
    """The ID of a job that a member adds; jobs with one number have one ID."""
    return id_of(cluster, adding(cluster, *options, "ID", f"{number}{MIDDLE[1:]}", timeout_ms=1000, by=by))


def added_on_both_sides(cluster: Cluster) -> bytes:
    """Add the same job on both sides of a partition."""
    first, second, third = cluster.members
    cluster.partition([first], [second, third])
    cluster.run(seconds=40)
    (job_id,) = {added(cluster, by, "REPLICATE", 1, "RETRY", 300) for by in (1, 2)}
    cluster.run(seconds=1)
    assert len(cluster.copies(job_id, "queued")) == 2
    return job_id


def test_one_of_them_stays_queued_soon_after_the_nodes_meet(cluster: Cluster) -> None:
    job_id = added_on_both_sides(cluster)
    cluster.heal()
    cluster.until(cluster.is_whole, within_s=60)
    cluster.run(seconds=5)
    assert len(cluster.copies(job_id, "queued")) == 1


def test_one_acknowledgement_then_ends_it_everywhere(cluster: Cluster) -> None:
    job_id = added_on_both_sides(cluster)
    cluster.heal()
    cluster.until(cluster.is_whole, within_s=60)
    cluster.run(seconds=5)
    (holder,) = cluster.copies(job_id, "queued")
    worker = holder.client()
    worker.call("GETJOB", "FROM", "mail")
    worker.call("ACKJOB", job_id)
    cluster.run(seconds=5)
    assert is_over(cluster, job_id)
    assert cluster.copies(job_id) == []


def test_one_of_them_stays_queued_also_if_both_nodes_know_that_the_other_one_has_it(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job_id = added(cluster, 1, "REPLICATE", 3, "RETRY", 20)
    cluster.partition([first], [second, third])
    cluster.run(seconds=60)
    assert len(cluster.copies(job_id, "queued")) == 2
    cluster.heal()
    cluster.until(cluster.is_whole, within_s=60)
    cluster.run(seconds=5)
    assert len(cluster.copies(job_id, "queued")) == 1


def test_one_of_them_stays_queued_also_if_neither_node_is_a_home_of_the_job(cluster: Cluster) -> None:
    """Each node was alone, and the node that would have got the job first did not add it."""
    first, second, third = cluster.members
    cluster.partition([first], [second], [third])
    cluster.run(seconds=40)
    jobs = [added(cluster, by, "REPLICATE", 1, "RETRY", 300, number=number) for number in range(8) for by in (1, 2)]
    cluster.heal()
    cluster.until(cluster.is_whole, within_s=60)
    assert third.id in {homes(first.node.state, job_id, 1)[0] for job_id in jobs}
    cluster.run(seconds=5)
    assert [len(cluster.copies(job_id, "queued")) for job_id in jobs] == [1] * len(jobs)


def test_a_node_that_gives_way_tells_the_other_one_who_else_has_the_job(cluster: Cluster) -> None:
    """A holder that only one of two nodes knew would have the job queued as well."""
    first, second, third = cluster.members
    cluster.partition([first], [second, third])
    cluster.run(seconds=40)
    jobs = {
        added(cluster, by, "REPLICATE", copies, "RETRY", 5, number=number)
        for number in range(8)
        for by, copies in ((1, 1), (2, 2))
    }
    assert len(jobs) == 8
    cluster.heal()
    cluster.lose("WILLQUEUE", by=first, to=third)
    cluster.lose("WILLQUEUE", by=third, to=first)
    cluster.until(cluster.is_whole, within_s=60)
    cluster.run(seconds=10)
    cluster.heal()
    cluster.run(seconds=20)
    assert [len(cluster.copies(job_id, "queued")) for job_id in jobs] == [1] * 8
