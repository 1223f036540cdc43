"""Clusters of real processes whose wires are cut: between halves, around single nodes, in one direction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cluster import RealNode
from support.wires import WiredCluster, Wires


@pytest.fixture
def wires() -> Iterator[Wires]:
    """Wires without cuts."""
    with Wires() as all_wires:
        yield all_wires


@pytest.fixture
def cluster(tmp_path: Path, wires: Wires) -> Iterator[WiredCluster]:
    """Three nodes that reach each other only through wires."""
    with WiredCluster(tmp_path, wires, 3) as three:
        yield three


def test_separated_halves_fail_each_other_and_reconnect(cluster: WiredCluster, wires: Wires) -> None:
    one, two, three = cluster.nodes
    ids = [node.id for node in cluster.nodes]
    wires.halve([one], [two, three])
    cluster.wait_until(
        lambda: "fail" in two.view()[ids[0]] and "fail" in three.view()[ids[0]], "the majority misses one"
    )
    cluster.wait_until(lambda: all("fail?" in one.view()[other] for other in ids[1:]), "one misses the others")
    wires.repair()
    cluster.wait_whole()
    assert [node.id for node in cluster.nodes] == ids


def test_both_sides_of_a_partition_work_and_all_jobs_are_done_after_it(cluster: WiredCluster, wires: Wires) -> None:
    one, two, three = cluster.nodes
    missed = one.id
    shared = one.call("ADDJOB", "q", "x", 0, "REPLICATE", 3, "RETRY", 1)
    wires.halve([one], [two, three])
    cluster.wait_until(lambda: "fail" in two.view()[missed], "one is missed")
    here = one.call("ADDJOB", "q", "here", 0, "REPLICATE", 1, "RETRY", 1)
    there = two.call("ADDJOB", "q", "there", 500, "REPLICATE", 2, "RETRY", 1)
    assert finish(one, 2) == {shared, here}
    assert finish(three, 2) == {shared, there}, "nobody could tell that it was done on the other side"
    wires.repair()
    cluster.wait_whole()
    cluster.wait_until(lambda: not any(map(cluster.holders, (shared, here, there))), "all are collected")


def test_node_cut_off_from_one_node_is_suspected_only_by_that_node(cluster: WiredCluster, wires: Wires) -> None:
    one, two, three = cluster.nodes
    ids = [node.id for node in cluster.nodes]
    wires.cut([one], [two])
    cluster.wait_until(lambda: "fail?" in two.view()[ids[0]], "two misses one")
    cluster.wait_until(lambda: "fail?" not in one.view()[ids[2]], "one reaches three")
    job = one.call("ADDJOB", "q", "x", 5000, "REPLICATE", 2, "RETRY", 1)
    assert finish(three, 1) == {job}
    assert "fail" not in three.view()[ids[0]], "one node is no majority"
    wires.repair()
    cluster.wait_whole()
    cluster.wait_until(lambda: not cluster.holders(job), "the job is collected")


def test_slow_links_cause_no_duplicates(cluster: WiredCluster, wires: Wires) -> None:
    one, two, _ = cluster.nodes
    wires.slow(0.05)
    jobs = {one.call("ADDJOB", "q", number, 5000, "REPLICATE", 3, "RETRY", 5) for number in range(10)}
    assert finish(two, len(jobs)) == jobs
    cluster.wait_until(lambda: not any(map(cluster.holders, jobs)), "all are collected")
    for node in cluster.nodes:
        assert [node.call("GETJOB", "NOHANG", "FROM", "q"), node.info("jobs")["registered_jobs"]] == [None, "0"]


def finish(node: RealNode, count: int) -> set[bytes]:
    """Fetch and acknowledge `count` different jobs at a node; returns their IDs."""
    found: list[bytes] = []
    while len(found) < count:
        for _, job, _ in node.call("GETJOB", "COUNT", count - len(found), "FROM", "q"):
            found.append(job)
            node.call("ACKJOB", job)
    assert len(set(found)) == count
    return set(found)
