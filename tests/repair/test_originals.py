"""Lost copies among nodes of the original: they hold and take copies, and get only messages that they know."""

from __future__ import annotations

from disqued.bus import kinds
from disqued.testing.cluster import Cluster
from repair.losing import add, copies, lists_of
from support.stories import as_original


def mixed(count: int, originals: int) -> Cluster:
    """Nodes of ours, and originals behind them."""
    cluster = Cluster(count, meet=False)
    for member in cluster.members[-originals:]:
        as_original(member)
    cluster.meet()
    for member in cluster.members[-originals:]:
        as_original(member)
        member.admin.call("CONFIG", "SET", "repair", "no")
    cluster.run(seconds=3)
    cluster.forget_sent()
    return cluster


def forget(cluster: Cluster, number: int) -> None:
    """Kill a member and have the others forget it."""
    gone = cluster.members[number]
    gone.crash()
    for member in cluster.members:
        if member.running:
            member.admin.call("CLUSTER", "FORGET", gone.id)


def test_an_original_takes_the_copy_and_the_other_holders_learn_of_it() -> None:
    cluster = mixed(4, 1)
    first, second, third, original = cluster.members
    added = add(cluster, first, 60, "REPLICATE", 3)
    jobs = [job_id for job_id in added if set(lists_of(first, job_id)) == {first.id, second.id, third.id}]
    forget(cluster, 1)
    cluster.run(seconds=5)
    assert jobs
    assert copies(cluster, added) == {3}
    assert all({first.id, third.id, original.id} <= set(lists_of(third, job_id)) for job_id in jobs)
    known = {kinds.PING, kinds.PONG, kinds.MEET, kinds.FAIL, kinds.REPLJOB}
    assert {sent.frame.kind for sent in cluster.sent(to=original)} <= known


def test_an_original_that_holds_the_job_learns_of_the_new_copy() -> None:
    cluster = mixed(4, 1)
    first, second, third, original = cluster.members
    added = add(cluster, first, 60, "REPLICATE", 3)
    jobs = [job_id for job_id in added if set(lists_of(first, job_id)) == {first.id, second.id, original.id}]
    forget(cluster, 1)
    cluster.run(seconds=5)
    assert jobs
    assert copies(cluster, added) == {3}
    assert all(third.id in lists_of(original, job_id) for job_id in jobs)


def test_jobs_with_copies_at_originals_are_collected() -> None:
    cluster = mixed(4, 2)
    first = cluster.members[0]
    jobs = add(cluster, first, 20, "REPLICATE", 3, "RETRY", 5)
    forget(cluster, 1)
    cluster.run(seconds=5)
    taken: set[bytes] = set()
    for _ in range(30):
        for member in cluster.members:
            if member.running:
                ids = member.admin.take("mail", count=20)
                member.admin.call("ACKJOB", *ids) if ids else None
                taken.update(ids)
        cluster.run(seconds=1)
    assert taken == set(jobs)
    assert copies(cluster, jobs) == {0}
