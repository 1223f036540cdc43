"""Holders of one job that do not all know each other: their lists become equal, and one of them has it queued."""

from __future__ import annotations

from disqued.placing.homes import homes
from disqued.testing.cluster import Cluster, Member
from replication.adding import adding, holders, id_of
from support.fixtures import settled

RETRY_S = 5


def separate(cluster: Cluster, one: Member, other: Member) -> None:
    """Two nodes do not reach each other; all others reach both."""
    cluster.cut(one, other)
    cluster.cut(other, one)
    cluster.run(seconds=40)


def number_for(first: Member, second: Member, third: Member, last: Member) -> int:
    """A number of a job that has two homes for the first node, of which one is a home for the last node too."""
    for number in range(200):
        job_id = b"D-00000000-%024d-05a1" % number
        seen_by_first = set(homes(first.node.state, job_id, 2))
        seen_by_last = set(homes(last.node.state, job_id, 2))
        if seen_by_first == {first.id, second.id} and seen_by_last == {second.id, third.id}:
            return number
    raise AssertionError("no number is right")


def add_twice(cluster: Cluster, retry_s: int = RETRY_S) -> bytes:
    """Have a job added by the first and by the last of four nodes, which do not reach each other.

    The first three nodes have it. The second one has it from both.
    """
    first, second, third, last = cluster.members
    separate(cluster, first, last)
    options = ("REPLICATE", 2, "RETRY", retry_s, "ID", f"{number_for(first, second, third, last):024d}")
    job_id = id_of(cluster, adding(cluster, *options, timeout_ms=1000, by=1))
    cluster.run(seconds=2)
    assert id_of(cluster, adding(cluster, *options, timeout_ms=1000, by=4)) == job_id
    cluster.run(milliseconds=20)
    assert cluster.copies(job_id) == [first, second, third]
    return job_id


def lists(cluster: Cluster, job_id: bytes) -> list[set[bytes]]:
    """The holders of a job as each of its holders knows them."""
    return [holders(member, job_id) for member in cluster.copies(job_id)]


def test_job_that_is_added_twice_is_not_queued_twice() -> None:
    """Seeds 1309, 1530: the only node that knew all holders told none of them."""
    cluster = settled(4)
    job_id = add_twice(cluster)
    everyone = {member.id for member in cluster.members[:3]}
    assert lists(cluster, job_id) == [everyone] * 3
    for _ in range(4 * RETRY_S):
        cluster.run(seconds=1)
        assert len(cluster.copies(job_id, "queued")) == 1


def test_job_that_is_added_twice_does_not_stay_queued_twice_when_the_list_of_holders_is_lost() -> None:
    cluster = settled(4)
    cluster.lose("REPLJOB", by=cluster.members[1])
    job_id = add_twice(cluster)
    cluster.run(milliseconds=500)
    cluster.heal()
    cluster.run(seconds=2 * RETRY_S)
    for _ in range(2 * RETRY_S):
        cluster.run(seconds=1)
        assert len(cluster.copies(job_id, "queued")) == 1
    assert len(lists(cluster, job_id)[0]) == 3


def test_node_that_has_a_job_queued_gives_way_as_soon_as_it_learns_of_another_one() -> None:
    """It does not wait until a third holder asks, which a retry time of five minutes would delay."""
    cluster = settled(4)
    _, second, third, _ = cluster.members
    cluster.lose("REPLJOB", by=second)
    job_id = add_twice(cluster, 300)
    cluster.run(milliseconds=500)
    cluster.heal()
    assert third.admin.call("ENQUEUE", job_id) == 1
    cluster.run(milliseconds=20)
    assert len(cluster.copies(job_id, "queued")) == 1


def give_back_on_both_sides(cluster: Cluster) -> bytes:
    """Have a job queued on two nodes, each of which got it from another holder on its side of a partition.

    The first of four nodes and one other have it, too. The partition continues.
    """
    first = cluster.members[0]
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 2, "RETRY", RETRY_S))
    (holder,) = set(cluster.copies(job_id)) - {first}
    others = [member for member in cluster.members if member not in (first, holder)]
    cluster.partition([first, others[0]], [holder, others[1]])
    cluster.run(seconds=40)
    for member in others:
        worker = member.client()
        worker.send("GETJOB", "FROM", "mail")
        cluster.run(milliseconds=20)
        assert worker.next_reply() == [[b"mail", job_id, b"body"]]
        assert worker.call("NACK", job_id) == 1
    assert cluster.copies(job_id, "queued") == others
    return job_id


def heal_and_check(cluster: Cluster, job_id: bytes) -> None:
    """The job becomes queued on one node, and stays there."""
    cluster.heal()
    cluster.until(cluster.is_whole, within_s=60)
    cluster.run(seconds=2 * RETRY_S)
    for _ in range(2 * RETRY_S):
        cluster.run(seconds=1)
        assert len(cluster.copies(job_id, "queued")) == 1


def test_job_that_workers_on_both_sides_of_a_partition_gave_back_becomes_queued_on_one_node() -> None:
    """Each of two nodes got it from another holder, and neither knew of the other one."""
    cluster = settled(4)
    job_id = give_back_on_both_sides(cluster)
    heal_and_check(cluster, job_id)
    assert lists(cluster, job_id) == [{member.id for member in cluster.members}] * 4


def test_the_same_job_is_queued_on_one_node_although_those_that_knew_all_holders_loaded_it_after_a_crash() -> None:
    """Seed 2054, "logged kills": their lists may name nodes that have lost the job, so they tell only what is sure."""
    cluster = settled(4)
    for member in cluster.members:
        member.admin.call("CONFIG", "SET", "appendonly", "yes")
        member.config.appendonly = True
    job_id = give_back_on_both_sides(cluster)
    for member in set(cluster.copies(job_id)) - set(cluster.copies(job_id, "queued")):
        member.restart()
    cluster.run(seconds=1)
    assert len(cluster.copies(job_id)) == 4
    heal_and_check(cluster, job_id)


def test_list_of_holders_makes_no_copy_at_a_node_without_the_job() -> None:
    """The second node tells all that it knows, also the one that was asked for a copy and did not get the message."""
    cluster = settled(4)
    first, second, third, last = cluster.members
    separate(cluster, first, last)
    cluster.lose("REPLJOB", by=last, to=third)
    options = ("REPLICATE", 2, "RETRY", RETRY_S, "ID", f"{number_for(first, second, third, last):024d}")
    job_id = id_of(cluster, adding(cluster, *options, timeout_ms=1000, by=1))
    cluster.run(seconds=2)
    adding(cluster, *options, timeout_ms=1000, by=4)
    cluster.run(milliseconds=20)
    assert cluster.sent("REPLJOB", by=second, to=third) != []
    assert third not in cluster.copies(job_id)


def test_lists_are_equal_on_the_plain_path_so_no_holder_sends_its_own() -> None:
    cluster = settled(4)
    first = cluster.members[0]
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 3, "RETRY", RETRY_S))
    worker = next(member for member in cluster.members if member not in cluster.copies(job_id)).client()
    worker.send("GETJOB", "FROM", "mail")
    cluster.run(milliseconds=20)
    assert worker.next_reply() == [[b"mail", job_id, b"body"]]
    assert worker.call("NACK", job_id) == 1
    cluster.run(seconds=4 * RETRY_S)
    assert len(cluster.copies(job_id)) == 4
    assert len(cluster.sent("QUEUED")) > 10
    assert {sent.sender for sent in cluster.sent("REPLJOB")} == {first}
