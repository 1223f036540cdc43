"""Several nodes make the same job at the same time, by MOVEJOB or ADDJOB ID: it is one job, queued once, and soon."""

from __future__ import annotations

from random import Random

import pytest

from disqued.moves.successor import successor_id
from disqued.placing.homes import homes
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient
from replication.adding import adding, id_of

JOBS = 12
OPTIONS = ("RETRY", 300)
"""A retry time that nobody waits for."""
DISTANCES_MS = (1, 20, 60, 120)


def skewed(count: int, skew_ms: int) -> Cluster:
    """A cluster whose clocks differ by this much from node to node."""
    cluster = Cluster(count)
    for member in cluster.members:
        member.skew_ms = member.number * skew_ms
        member.jump()
    cluster.run(seconds=1)
    return cluster


def far_apart(count: int, chance: Random) -> Cluster:
    """A cluster with different latencies between its nodes."""
    cluster = Cluster(count)
    for one in cluster.members:
        for other in cluster.members[: one.number - 1]:
            delay_ms = chance.choice(DISTANCES_MS)
            cluster.network.path(one, other).delay_ms = delay_ms
            cluster.network.path(other, one).delay_ms = delay_ms
    cluster.run(seconds=2)
    return cluster


def queued_in(cluster: Cluster, name: str) -> int:
    """How many jobs the nodes have in a queue."""
    queues = [member.node.state.lifecycle.queues.get(name.encode()) for member in cluster.members if member.running]
    return sum(int(queue.length) for queue in queues if queue is not None)


def added(cluster: Cluster, copies: int) -> bytes:
    job_id = id_of(cluster, adding(cluster, "REPLICATE", copies, *OPTIONS, timeout_ms=2000, queue="old"))
    cluster.run(milliseconds=300)
    return job_id


def both(cluster: Cluster, members: list[Member], *words: bytes | str | int, apart_ms: int = 0) -> list[LocalClient]:
    """Send a request to two nodes, one after the other."""
    clients = [member.client() for member in members[:2]]
    for client in clients:
        client.send(*words)
        if apart_ms:
            cluster.run(milliseconds=apart_ms)
    return clients


@pytest.mark.parametrize("skew_ms", [0, 7])
@pytest.mark.parametrize(("nodes", "copies"), [(3, 2), (4, 3), (5, 2)])
def test_two_nodes_that_move_a_job_in_one_millisecond_have_it_queued_once(
    nodes: int, copies: int, skew_ms: int
) -> None:
    """Seed 201: creation times were equal, so the homes did not see that two nodes made the successor."""
    cluster = skewed(nodes, skew_ms)
    for number in range(JOBS):
        job_id = added(cluster, copies)
        both(cluster, cluster.copies(job_id), "MOVEJOB", job_id, "TO", f"new{number}")
        cluster.run(milliseconds=500)
        assert queued_in(cluster, f"new{number}") == 1


@pytest.mark.parametrize("skew_ms", [0, 7])
@pytest.mark.parametrize(("nodes", "copies"), [(3, 1), (3, 3), (4, 2), (5, 3)])
def test_two_nodes_that_add_a_job_in_one_millisecond_have_it_queued_once(nodes: int, copies: int, skew_ms: int) -> None:
    cluster = skewed(nodes, skew_ms)
    for number in range(JOBS):
        words = ("ADDJOB", f"new{number}", "body", 1000, "REPLICATE", copies, *OPTIONS, "ID", f"{number:024d}")
        clients = both(cluster, cluster.members, *words)
        cluster.run(milliseconds=500)
        assert len({client.next_reply() for client in clients}) == 1
        assert queued_in(cluster, f"new{number}") == 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("nodes", "copies"), [(3, 3), (4, 3), (5, 2), (5, 3)])
def test_far_nodes_that_make_the_same_move_have_the_job_queued_once(nodes: int, copies: int, seed: int) -> None:
    """Messages of the two nodes cross, and each may be the first at some homes: then none had the job queued."""
    chance = Random(seed)
    cluster = far_apart(nodes, chance)
    for number in range(JOBS):
        job_id = added(cluster, copies)
        movers = chance.sample(cluster.copies(job_id), 2)
        both(cluster, movers, "MOVEJOB", job_id, "TO", f"new{number}", apart_ms=chance.choice((1, 10, 50, 100)))
        cluster.run(milliseconds=1500)
        assert queued_in(cluster, f"new{number}") == 1
        assert cluster.copies(job_id) == []


def test_a_node_that_gets_a_job_from_afar_learns_that_its_homes_have_it_queued() -> None:
    """The homes were too far for one mover, which found nodes nearby that knew of no other mover."""
    cluster = Cluster(5)
    cluster.run(seconds=1)
    tested = 0
    for number in range(3 * JOBS):
        job_id = added(cluster, 2)
        target = f"new{number}"
        near = homes(cluster.members[0].node.state, successor_id(job_id, target.encode(), 0), 2)
        afar, other = cluster.copies(job_id)
        if afar.id in near or other.id not in near:
            continue
        tested += 1
        set_distances(cluster, afar, near, 120)
        both(cluster, [afar, other], "MOVEJOB", job_id, "TO", target, apart_ms=100)
        cluster.run(milliseconds=800)
        assert queued_in(cluster, target) == 1
        set_distances(cluster, afar, near, 1)
        cluster.run(milliseconds=200)
    assert tested > 2


def set_distances(cluster: Cluster, one: Member, others: list[bytes], delay_ms: int) -> None:
    for other in cluster.members:
        if other.id in others:
            cluster.network.path(one, other).delay_ms = delay_ms
            cluster.network.path(other, one).delay_ms = delay_ms


def test_the_other_node_completes_a_move_when_the_first_one_dies(cluster: Cluster) -> None:
    """A node that knows that another one makes the same move waits for it, but not forever."""
    job_id = added(cluster, 3)
    first, second, third = cluster.members
    cluster.lose("GOTJOB", to=first)
    cluster.lose("GOTJOBS", to=first)
    first.client().send("MOVEJOB", job_id, "TO", "new")
    cluster.run(milliseconds=20)
    second.client().send("MOVEJOB", job_id, "TO", "new")
    cluster.run(milliseconds=20)
    first.crash()
    cluster.run(seconds=320)
    assert {member.admin.show(job_id).get("state") for member in (second, third)} <= {b"acked", None}
    assert queued_in(cluster, "new") == 1


def test_a_node_that_will_not_keep_a_job_does_not_confirm_a_copy(cluster: Cluster) -> None:
    """Two nodes passed the job on to each other, both dropped it, and their clients had its ID."""
    number = next(number for number in range(100) if homes_of(cluster, number) == [cluster.members[2].id])
    away = cluster.members[2]
    cluster.partition([away], cluster.members[:2])
    words = ("ADDJOB", "new", "body", 1000, "REPLICATE", 1, *OPTIONS, "ID", f"{number:024d}")
    clients = both(cluster, cluster.members, *words)
    cluster.run(milliseconds=800)
    assert [client.silent for client in clients] == [True, True]
    cluster.heal()
    cluster.run(milliseconds=600)
    (job_id,) = {client.next_reply() for client in clients}
    assert isinstance(job_id, bytes)
    assert cluster.copies(job_id) == [away]


def homes_of(cluster: Cluster, number: int) -> list[bytes]:
    """The home of a job with one copy."""
    return homes(cluster.members[0].node.state, b"D-00000000-%024d-05a1" % number, 1)


def test_a_node_that_queues_a_job_although_another_one_has_it_queued_gives_way(cluster: Cluster) -> None:
    """It learned that the job was queued before it queued it, so the first node has to say so again."""
    for number in range(JOBS):
        words = ("ADDJOB", f"new{number}", "body", 1000, "REPLICATE", 3, *OPTIONS, "ID", f"{number:024d}")
        client = cluster.members[0].client()
        client.send(*words)
        cluster.run(milliseconds=100)
        job_id = client.next_reply()
        assert isinstance(job_id, bytes)
        other = next(member for member in cluster.members if member not in cluster.copies(job_id, "queued"))
        assert other.admin.call("ENQUEUE", job_id) == 1
        cluster.run(milliseconds=20)
        assert len(cluster.copies(job_id, "queued")) == 1
