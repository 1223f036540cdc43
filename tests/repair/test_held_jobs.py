"""Jobs that wait for others (ADDJOB AFTER) get lost copies back with what they wait for."""

from __future__ import annotations

import pytest

from dependencies.helping import add, call, held_at, job_at, queued_at
from disqued.build import COMPILED
from disqued.core.jobs.attributes import AFTER
from disqued.testing.cluster import Cluster, Member
from disqued.testing.mutations import MUTATIONS
from repair.losing import is_whole, rebuilt
from support.fixtures import settled

RETRY_S = 10


def until_whole(cluster: Cluster) -> None:
    cluster.run(seconds=1)
    cluster.until(lambda: is_whole(cluster), within_s=30)


def pipeline(cluster: Cluster, *, copies: int) -> tuple[bytes, bytes]:
    """Add a parent with a copy on each member at the last one, and a child at the first one."""
    first, *_, last = cluster.members
    parent = add(cluster, last, "extract", "REPLICATE", len(cluster.members), "RETRY", 300)
    child = add(cluster, first, "load", "AFTER", parent, "REPLICATE", copies, "RETRY", RETRY_S)
    return parent, child


def holder_by_repair(cluster: Cluster, child: bytes) -> Member:
    """Have the holder of the child that did not add it lose its jobs; returns the one that has the new copy."""
    first = cluster.members[0]
    (lost,) = [member for member in cluster.copies(child) if member is not first]
    lost.restart()
    until_whole(cluster)
    (got,) = [member for member in cluster.copies(child) if member is not first]
    return got


def test_a_held_job_whose_copy_is_made_again_is_still_held() -> None:
    cluster = settled(3)
    parent, child = pipeline(cluster, copies=3)
    cluster.members[1].restart()
    until_whole(cluster)
    assert held_at(cluster, child) == cluster.members
    extras = [job_at(member, child).extra for member in cluster.members]
    assert len({extra.get(AFTER) for extra in extras if extra is not None}) == 1
    assert all(extra is not None for extra in extras)
    call(cluster, cluster.members[2], "ACKJOB", parent)
    cluster.run(seconds=2)
    assert held_at(cluster, child) == []
    assert queued_at(cluster, child) == [cluster.members[0]]


def test_a_held_job_is_freed_by_the_node_that_got_it_by_repair_if_the_first_one_dies() -> None:
    cluster = settled(3)
    parent, child = pipeline(cluster, copies=2)
    got = holder_by_repair(cluster, child)
    assert rebuilt(cluster).keys() == {"restarted"}
    cluster.members[0].crash()
    cluster.run(seconds=2 * RETRY_S)
    assert held_at(cluster, child) == [got]
    call(cluster, got, "ACKJOB", parent)
    cluster.run(seconds=RETRY_S + 3)
    assert queued_at(cluster, child) == [got]


def test_no_node_delivers_a_held_job_that_all_its_nodes_got_by_repair() -> None:
    cluster = settled(4)
    parent, child = pipeline(cluster, copies=2)
    first = cluster.members[0]
    for _ in range(2):
        for member in list(cluster.copies(child)):
            member.restart()
            until_whole(cluster)
    cluster.run(seconds=5 * RETRY_S)
    assert queued_at(cluster, child) == []
    assert len(held_at(cluster, child)) == 2
    call(cluster, first, "ACKJOB", parent)
    cluster.run(seconds=2 * RETRY_S)
    assert len(queued_at(cluster, child)) == 1
    assert held_at(cluster, child) == []


@pytest.mark.skipif(COMPILED, reason="needs the interpreted build")
def test_a_copy_without_its_parents_is_noticed() -> None:
    """The test above fails if a copy that is made again does not have its hard attributes."""
    cluster = settled(3)
    _, child = pipeline(cluster, copies=3)
    with MUTATIONS["repair-forgets-hard-attributes"].applied():
        cluster.members[1].restart()
        until_whole(cluster)
    assert held_at(cluster, child) != cluster.members
