"""A job that both sides of a partition added under one ID becomes one job again."""

from __future__ import annotations

from disqued.placing.homes import homes
from disqued.testing.cluster import Cluster
from moves.test_dead_letters import is_over

MIDDLE = "0123456789abcdefABCDEF+/"


def added_on_both_sides(cluster: Cluster) -> bytes:
    """Add the same job on both sides of a partition."""
    first, second, third = cluster.members
    cluster.partition([first], [second, third])
    cluster.run(seconds=40)
    ids = set()
    for member in (first, second):
        client = member.client()
        client.send("ADDJOB", "mail", "body", 1000, "REPLICATE", 1, "RETRY", 300, "ID", MIDDLE)
        cluster.until(lambda client=client: not client.silent, within_s=2)  # type: ignore[misc]
        ids.add(client.next_reply())
    (job_id,) = ids
    assert isinstance(job_id, bytes)
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
    client = first.client()
    client.send("ADDJOB", "mail", "body", 1000, "REPLICATE", 3, "RETRY", 20, "ID", MIDDLE)
    cluster.until(lambda: not client.silent, within_s=2)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
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
    jobs: list[bytes] = []
    cluster.partition([first], [second], [third])
    cluster.run(seconds=40)
    for number in range(8):
        for member in (first, second):
            client = member.client()
            client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 1, "RETRY", 300, "ID", f"{number}{MIDDLE[1:]}")
            cluster.run(milliseconds=100)
            job_id = client.next_reply()
            assert isinstance(job_id, bytes)
            jobs.append(job_id)
    cluster.heal()
    cluster.until(cluster.is_whole, within_s=60)
    assert third.id in {homes(first.node.state, job_id, 1)[0] for job_id in jobs}
    cluster.run(seconds=5)
    assert [len(cluster.copies(job_id, "queued")) for job_id in jobs] == [1] * len(jobs)


def test_a_node_that_gives_way_tells_the_other_one_who_else_has_the_job(cluster: Cluster) -> None:
    """A holder that only one of two nodes knew would have the job queued as well."""
    first, second, third = cluster.members
    jobs: set[bytes] = set()
    cluster.partition([first], [second, third])
    cluster.run(seconds=40)
    for number in range(8):
        for member, copies in ((first, 1), (second, 2)):
            client = member.client()
            options = ("REPLICATE", copies, "RETRY", 5, "ID", f"{number}{MIDDLE[1:]}")
            client.send("ADDJOB", "mail", "body", 1000, *options)
            cluster.until(lambda client=client: not client.silent, within_s=2)  # type: ignore[misc]
            job_id = client.next_reply()
            assert isinstance(job_id, bytes)
            jobs.add(job_id)
    assert len(jobs) == 8
    cluster.heal()
    cluster.lose("WILLQUEUE", by=first, to=third)
    cluster.lose("WILLQUEUE", by=third, to=first)
    cluster.until(cluster.is_whole, within_s=60)
    cluster.run(seconds=10)
    cluster.heal()
    cluster.run(seconds=20)
    assert [len(cluster.copies(job_id, "queued")) for job_id in jobs] == [1] * 8
