"""Where the copies of jobs are if nodes have zones: in as many zones as possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from disqued.testing.cluster import Cluster, Member
from leaving.leaver import add_copied, leave, until_done

JOBS = 60


def cluster_in(*zones: str) -> Cluster:
    """A cluster with a node for each of these zones; "" for a node without a zone."""
    cluster = Cluster(len(zones))
    for member, zone in zip(cluster.members, zones, strict=True):
        assert member.admin.call("CONFIG", "SET", "cluster-zone", zone) == b"OK"
    cluster.run(milliseconds=300)
    return cluster


def zone_of(member: Member) -> bytes:
    return member.node.state.view.zone


def placed(cluster: Cluster, jobs: Iterable[bytes]) -> Counter[tuple[bytes, ...]]:
    """How many jobs have their copies in which zones."""
    return Counter(tuple(sorted(zone_of(member) for member in cluster.copies(job))) for job in jobs)


def add_everywhere(cluster: Cluster, replicate: int, *options: str | int) -> list[bytes]:
    """Add jobs at each member in turn."""
    share = JOBS // len(cluster.members)
    return [
        job
        for member in cluster.members
        for job in add_copied(cluster, member, share, "REPLICATE", replicate, *options)
    ]


SIX = ("a", "a", "b", "b", "c", "c")


@pytest.mark.parametrize("replicate", [2, 3])
def test_each_copy_is_in_a_zone_of_its_own(replicate: int) -> None:
    cluster = cluster_in(*SIX)
    jobs = add_everywhere(cluster, replicate)
    assert len(jobs) == JOBS
    assert all(len(set(zones)) == len(zones) == replicate for zones in placed(cluster, jobs))
    holders = Counter(member.number for job in jobs for member in cluster.copies(job))
    assert set(holders) == {1, 2, 3, 4, 5, 6}, "every node of a zone is used"


def test_no_job_is_lost_with_a_whole_zone() -> None:
    cluster = cluster_in(*SIX)
    jobs = add_everywhere(cluster, 2)
    for member in cluster.members[2:4]:
        member.lose_power()
    assert all(cluster.copies(job) for job in jobs)


def test_more_copies_than_zones_are_spread_evenly() -> None:
    cluster = cluster_in("a", "a", "a", "b", "b", "b")
    jobs = add_everywhere(cluster, 4)
    assert set(placed(cluster, jobs)) == {(b"a", b"a", b"b", b"b")}


def test_nodes_without_a_zone_are_used_before_a_second_copy_in_a_zone() -> None:
    cluster = cluster_in("a", "a", "b", "")
    jobs = add_copied(cluster, cluster.members[0], 20, "REPLICATE", 3)
    assert set(placed(cluster, jobs)) == {(b"", b"a", b"b")}


def test_a_node_without_a_zone_is_used_before_a_second_copy_in_the_only_zone() -> None:
    cluster = cluster_in("a", "a", "a", "")
    jobs = add_copied(cluster, cluster.members[0], 20, "REPLICATE", 2)
    assert set(placed(cluster, jobs)) == {(b"", b"a")}


def test_in_a_single_zone_copies_are_placed_as_without_zones() -> None:
    found = []
    for zones in (("a",) * 4, ("",) * 4):
        cluster = cluster_in(*zones)
        jobs = add_copied(cluster, cluster.members[0], 20, "REPLICATE", 2)
        found.append([[member.number for member in cluster.copies(job)] for job in jobs])
    assert found[0] == found[1]


def test_the_node_that_takes_over_for_a_silent_one_is_in_a_zone_without_a_copy() -> None:
    cluster = cluster_in(*SIX)
    first, second, *_ = cluster.members
    for member in cluster.members[2:4]:
        cluster.cut(first, member)
    jobs = add_copied(cluster, first, 20, "REPLICATE", 2)
    assert len(jobs) == 20
    assert not any(second in cluster.copies(job) for job in jobs)


def test_other_nodes_keep_all_copies_in_different_zones_for_a_leaving_node() -> None:
    cluster = cluster_in(*SIX)
    leave(cluster.members[0])
    cluster.run(milliseconds=300)
    jobs = add_copied(cluster, cluster.members[0], 20, "REPLICATE", 3)
    assert set(placed(cluster, jobs)) == {(b"a", b"b", b"c")}


@pytest.mark.parametrize("replicate", [1, 2, 3])
def test_jobs_of_a_leaving_node_stay_in_as_many_zones(replicate: int) -> None:
    cluster = cluster_in(*SIX)
    first = cluster.members[0]
    jobs = (
        add_copied(cluster, first, JOBS, "REPLICATE", replicate)
        if replicate > 1
        else [first.admin.add("copied", b"body", "REPLICATE", 1) for _ in range(JOBS)]
    )
    leave(first)
    until_done(cluster, first)
    left = placed(cluster, jobs)
    assert sum(left.values()) == JOBS
    assert all(len(set(zones)) >= replicate for zones in left)
