"""Failure detection: which nodes are flagged, after what time, and how the flag is removed."""

from __future__ import annotations

import pytest

from disqued.testing.cluster import Cluster
from membership.stories import figures, flags, is_mesh, logged, short_node_timeout


def cluster_of(count: int) -> Cluster:
    """A settled cluster whose nodes suspect each other after a second of silence."""
    cluster = Cluster(count, config=short_node_timeout)
    cluster.run(seconds=3)
    return cluster


@pytest.mark.parametrize("silent", [False, True])
def test_majority_declares_a_dead_node_failed_and_readmits_it(silent: bool) -> None:
    cluster = cluster_of(3)
    one, other, dead = cluster.members
    dead.crash(silent=silent)
    cluster.until(lambda: flags(one, dead) == flags(other, dead) == "fail", within_s=4)
    cluster.run(milliseconds=200)
    assert f"{dead.id.decode()} {dead.ip.decode()}:7711 fail " in one.host.nodes_text
    assert one.sees == other.sees == 1
    assert figures(one)["cluster_nodes_fail"] == "1"
    dead.restart()
    cluster.until(lambda: is_mesh(cluster), within_s=5)
    assert flags(one, dead) == flags(other, dead) == "noflags"


def test_one_of_two_nodes_is_not_a_majority() -> None:
    cluster = cluster_of(2)
    one, dead = cluster.members
    dead.crash()
    cluster.run(seconds=10)
    assert flags(one, dead) == "fail?"
    assert figures(one)["cluster_nodes_pfail"] == "1"
    assert one.sees == 0
    dead.restart()
    cluster.until(lambda: is_mesh(cluster), within_s=5)


def test_three_of_five_nodes_are_a_majority_and_two_are_not() -> None:
    cluster = cluster_of(5)
    one, other, third, fourth, fifth = cluster.members
    for dead in (fourth, fifth):
        dead.crash()
    cluster.until(lambda: all(flags(member, fifth) == "fail" for member in (one, other, third)), within_s=6)
    cluster.until(lambda: all(flags(member, fourth) == "fail" for member in (one, other, third)), within_s=6)
    third.crash()
    cluster.run(seconds=10)
    assert flags(one, third) == flags(other, third) == "fail?"


def test_minority_of_a_partition_declares_no_node_failed() -> None:
    cluster = cluster_of(5)
    small, large = cluster.members[:2], cluster.members[2:]
    cluster.partition(small, large)
    cluster.run(seconds=8)
    assert {flags(member, other) for member in large for other in small} == {"fail"}
    assert {flags(member, other) for member in small for other in large} == {"fail?"}
    cluster.heal()
    cluster.until(lambda: is_mesh(cluster), within_s=10)


def test_node_that_was_paused_does_not_suspect_the_others() -> None:
    cluster = cluster_of(3)
    one, other, stopped = cluster.members
    stopped.pause()
    cluster.until(lambda: flags(one, stopped) == "fail", within_s=6)
    cluster.run(seconds=5)
    stopped.resume()
    cluster.until(lambda: is_mesh(cluster), within_s=5)
    assert logged(stopped, "does not answer") == []
    assert flags(one, stopped) == flags(other, stopped) == "noflags"


def test_healthy_cluster_suspects_no_node() -> None:
    cluster = cluster_of(5)
    cluster.run(seconds=120)
    assert is_mesh(cluster)
    assert [logged(member, "does not answer") for member in cluster.members] == [[]] * 5


def test_link_that_delivers_nothing_is_replaced() -> None:
    cluster = cluster_of(3)
    one, other, _ = cluster.members
    link = one.node.state.view.peers[other.id].link
    for end in cluster.network.ends_of(one):
        if end.link is link:
            end.vanish()
    cluster.run(seconds=4)
    assert is_mesh(cluster)
    assert one.node.state.view.peers[other.id].link is not link


def test_leaving_and_its_cancellation_reach_all_nodes() -> None:
    cluster = cluster_of(3)
    one, other, leaver = cluster.members
    leaver.admin.call("CLUSTER", "LEAVING", "yes")
    cluster.run(milliseconds=200)
    assert flags(one, leaver) == flags(other, leaver) == "leaving"
    assert one.sees == other.sees == 1
    assert figures(one)["cluster_nodes_leaving"] == "1"
    leaver.admin.call("CLUSTER", "LEAVING", "no")
    cluster.run(milliseconds=200)
    assert flags(one, leaver) == "noflags"
    assert one.sees == other.sees == 2
