"""CLUSTER FORGET and CLUSTER RESET: nodes are removed, and do not return by gossip."""

from __future__ import annotations

import pytest

from disqued.testing.cluster import PORT, Cluster
from membership.stories import flags, is_mesh, known, nodes


def test_forgotten_node_stays_forgotten_for_a_minute_despite_gossip() -> None:
    cluster = Cluster(4)
    cluster.run(seconds=2)
    one, *_, gone = cluster.members
    assert one.admin.call("CLUSTER", "FORGET", gone.id) == b"OK"
    assert gone.id.decode() not in one.host.nodes_text
    assert one.host.nodes_synced
    for _ in range(58):
        cluster.run(seconds=1)
        assert gone.id not in known(one)
    cluster.until(lambda: is_mesh(cluster), within_s=30)


def test_node_that_all_nodes_forget_is_gone() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=2)
    one, other, gone = cluster.members
    gone.crash()
    for member in (one, other):
        assert member.admin.call("CLUSTER", "FORGET", gone.id) == b"OK"
    cluster.run(seconds=120)
    assert known(one) == known(other) == {one.id, other.id}
    assert one.sees == other.sees == 1


def test_meet_brings_back_a_forgotten_node_at_once() -> None:
    cluster = Cluster(2)
    cluster.run(seconds=2)
    one, gone = cluster.members
    one.admin.call("CLUSTER", "FORGET", gone.id)
    one.admin.call("CLUSTER", "MEET", gone.ip, PORT)
    cluster.until(lambda: gone.id in known(one), within_s=2)
    one.admin.call("CLUSTER", "FORGET", gone.id)
    gone.admin.call("CLUSTER", "MEET", one.ip, PORT)
    cluster.until(lambda: gone.id in known(one), within_s=2)


def test_soft_reset_forgets_the_others_and_keeps_the_id() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=2)
    one, other, fresh = cluster.members
    before = fresh.id
    assert fresh.admin.call("CLUSTER", "RESET") == b"OK"
    assert known(fresh) == {before} == {fresh.id}
    cluster.run(seconds=20)
    assert known(fresh) == {before}, "the others know it, it does not know them"
    assert flags(one, fresh) == "noflags"
    fresh.admin.call("CLUSTER", "MEET", other.ip, PORT)
    cluster.until(lambda: is_mesh(cluster), within_s=10)


def test_former_id_has_no_address_after_a_hard_reset() -> None:
    cluster = Cluster(2)
    cluster.run(seconds=2)
    one, fresh = cluster.members
    before = fresh.id
    assert fresh.admin.call("CLUSTER", "RESET", "HARD") == b"OK"
    assert fresh.id != before
    cluster.run(seconds=10)
    assert nodes(one)[before] == (":0", "noaddr", "disconnected")
    assert one.sees == 0
    one.run(milliseconds=1)
    assert f"{before.decode()} :0 noaddr " in one.host.nodes_text


@pytest.mark.parametrize("count", [3, 4, 5, 7])
def test_gossip_about_its_address_does_not_bring_back_a_node_after_a_hard_reset(count: int) -> None:
    cluster = Cluster(count)
    cluster.run(seconds=2)
    fresh, *others = cluster.members
    before = fresh.id
    assert fresh.admin.call("CLUSTER", "RESET", "HARD") == b"OK"
    cluster.run(seconds=60)
    assert known(fresh) == {fresh.id}
    assert all(known(member) == {before, *(other.id for other in others)} for member in others)


def test_node_in_handshake_can_be_forgotten() -> None:
    [member] = Cluster(1).members
    member.admin.call("CLUSTER", "MEET", "10.9.9.9", PORT)
    [stand_in] = [node_id for node_id, (_, words, _) in nodes(member).items() if words == "handshake"]
    assert member.admin.call("CLUSTER", "FORGET", stand_in) == b"OK"
    assert known(member) == {member.id}
