"""Returning: nodes find their cluster after restarts, with new addresses or empty disks."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.config import Config
from disqued.testing.cluster import PORT, Cluster
from membership.stories import ScriptedNode, config, figures, flags, is_mesh, known, nodes, short_node_timeout


def seeded() -> Config:
    """The configuration of nodes that find each other by one seed name."""
    return config(cluster_seeds=("disque.example",), cluster_node_timeout=5000)


def name_all(cluster: Cluster) -> None:
    """Resolve the name of the seed to all members."""
    cluster.network.names[b"disque.example"] = [member.ip for member in cluster.members]


def move_all(cluster: Cluster) -> None:
    """Restart all members with new addresses."""
    for member in cluster.members:
        member.crash()
    for member in cluster.members:
        member.restart(ip=b"10.1.0.%d" % member.number)
    cluster.run(milliseconds=10)


def test_restarted_node_keeps_its_id_and_needs_no_meet() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=1)
    *_, back = cluster.members
    before = back.id
    back.restart()
    cluster.run(milliseconds=10)
    assert back.id == before
    cluster.until(lambda: is_mesh(cluster), within_s=3)


@pytest.mark.parametrize("silent", [False, True])
def test_members_connect_at_once_to_a_node_that_returns(silent: bool) -> None:
    cluster = Cluster(3, config=short_node_timeout)
    cluster.run(seconds=3)
    one, other, back = cluster.members
    back.crash(silent=silent)
    cluster.until(lambda: flags(one, back) == flags(other, back) == "fail")
    cluster.run(milliseconds=950)
    back.restart()
    cluster.run(milliseconds=6)
    assert [member.sees for member in cluster.members] == [2, 2, 2]
    assert is_mesh(cluster)


def test_pings_in_the_name_of_a_member_cause_one_connection_per_second() -> None:
    cluster = Cluster(2)
    one, gone = cluster.members
    gone.crash()
    cluster.run(seconds=5)
    forger = ScriptedNode(one, gone.ip, node_id=gone.id)
    peer = one.node.state.view.peers[gone.id]
    dials = 0
    for _ in range(100):
        before = int(peer.dials)
        forger.send_gossip(kinds.PING)
        dials += int(peer.dials) - before
        cluster.run(milliseconds=100)
    assert 8 <= dials <= 10


def test_nodes_find_each_other_when_all_restart_at_once() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=1)
    for member in cluster.members:
        member.crash()
    for member in cluster.members:
        member.restart()
    cluster.run(milliseconds=10)
    cluster.until(lambda: is_mesh(cluster), within_s=3)


def test_node_with_a_new_address_is_found_by_its_pings() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=1)
    one, other, moved = cluster.members
    moved.restart(ip=b"10.1.0.3")
    cluster.run(milliseconds=10)
    cluster.until(lambda: is_mesh(cluster), within_s=3)
    assert nodes(one)[moved.id][0] == nodes(other)[moved.id][0] == f"10.1.0.3:{PORT}"
    cluster.until(lambda: nodes(moved)[moved.id][0] == f"10.1.0.3:{PORT}", within_s=2)


def test_node_without_its_file_returns_as_a_new_member() -> None:
    cluster = Cluster(3, config=short_node_timeout)
    cluster.run(seconds=1)
    one, _, lost = cluster.members
    before = lost.id
    lost.restart(keep_nodes=False)
    assert lost.id != before
    lost.admin.call("CLUSTER", "MEET", one.ip, PORT)
    cluster.until(lambda: lost.sees == 2, within_s=10)
    assert nodes(one)[before][:2] == (":0", "noaddr")
    assert flags(one, lost) == "noflags"


def test_nodes_find_their_cluster_by_a_name() -> None:
    cluster = Cluster(4, meet=False, config=seeded)
    name_all(cluster)
    cluster.until(lambda: is_mesh(cluster), within_s=10)
    late = cluster.add()
    name_all(cluster)
    cluster.until(lambda: is_mesh(cluster), within_s=10)
    assert len(known(late)) == 5


def test_seed_that_does_not_resolve_is_looked_up_again() -> None:
    cluster = Cluster(2, meet=False, config=seeded)
    cluster.run(seconds=60)
    assert [len(known(member)) for member in cluster.members] == [1, 1]
    name_all(cluster)
    cluster.until(lambda: is_mesh(cluster), within_s=10)


def test_seeds_may_be_addresses_with_ports() -> None:
    cluster = Cluster(3, meet=False, config=lambda: config(cluster_seeds=("10.0.0.1:7711", "10.0.0.2:7711@17711")))
    cluster.until(lambda: is_mesh(cluster), within_s=10)


def delayed() -> Config:
    """The configuration of nodes that somebody introduces before they use their seeds."""
    return config(cluster_seeds=("disque.example",), cluster_seeds_delay=60, cluster_node_timeout=5000)


def test_new_node_uses_its_seeds_only_after_their_delay() -> None:
    cluster = Cluster(3, meet=False, config=delayed)
    name_all(cluster)
    cluster.run(seconds=59)
    assert [known(member) for member in cluster.members] == [{member.id} for member in cluster.members]
    cluster.until(lambda: is_mesh(cluster), within_s=10)


def test_members_that_know_each_other_do_not_wait_for_the_delay_of_seeds() -> None:
    cluster = Cluster(3, meet=False, config=delayed)
    name_all(cluster)
    cluster.until(lambda: is_mesh(cluster), within_s=70)
    cluster.run(seconds=100)
    move_all(cluster)
    name_all(cluster)
    cluster.until(lambda: is_mesh(cluster), within_s=30)


def test_no_meet_is_sent_after_all_seeds_are_members() -> None:
    cluster = Cluster(3, meet=False, config=seeded)
    name_all(cluster)
    cluster.until(lambda: is_mesh(cluster), within_s=10)
    cluster.run(seconds=40)
    cluster.network.capturing = True
    cluster.forget_sent()
    cluster.run(seconds=600)
    assert cluster.sent("MEET") == []
    assert {figures(member)["cluster_known_nodes"] for member in cluster.members} == {"3"}


@pytest.mark.parametrize("count", [3, 7])
def test_a_cluster_whose_members_all_move_forms_again_by_its_seeds(count: int) -> None:
    cluster = Cluster(count, meet=False, config=seeded)
    name_all(cluster)
    cluster.until(lambda: is_mesh(cluster), within_s=20)
    ids = {member.id for member in cluster.members}
    cluster.run(seconds=100)
    move_all(cluster)
    name_all(cluster)
    cluster.until(lambda: is_mesh(cluster), within_s=30)
    assert known(cluster.members[0]) == ids, "the members are the same, each listed once"


def test_cluster_forms_again_by_its_seeds_when_addresses_are_swapped() -> None:
    cluster = Cluster(3, meet=False, config=seeded)
    name_all(cluster)
    cluster.until(lambda: is_mesh(cluster), within_s=20)
    ips = [member.ip for member in cluster.members]
    for member in cluster.members:
        member.crash()
    for member, ip in zip(cluster.members, [*ips[1:], ips[0]], strict=True):
        member.restart(ip=ip)
    cluster.until(lambda: is_mesh(cluster), within_s=30)


def announce_names(cluster: Cluster) -> None:
    """Make all members announce host names."""
    for member in cluster.members:
        name = b"node-%d.example" % member.number
        cluster.network.names[name] = [member.ip]
        assert member.admin.call("CONFIG", "SET", "cluster-announce-hostname", name) == b"OK"


def test_a_cluster_whose_members_all_move_forms_again_by_their_host_names() -> None:
    cluster = Cluster(3, config=lambda: config(cluster_node_timeout=5000))
    announce_names(cluster)
    cluster.run(seconds=2)
    move_all(cluster)
    cluster.run(seconds=3)
    for member in cluster.members:
        cluster.network.names[b"node-%d.example" % member.number] = [member.ip]
    cluster.until(lambda: is_mesh(cluster), within_s=30)
    assert {address for address, _, _ in nodes(cluster.members[0]).values()} >= {"10.1.0.2:7711", "10.1.0.3:7711"}


def test_known_address_is_used_when_the_host_name_does_not_resolve() -> None:
    cluster = Cluster(2)
    announce_names(cluster)
    cluster.run(seconds=2)
    cluster.network.names.clear()
    for member in cluster.members:
        member.restart()
    cluster.run(milliseconds=10)
    cluster.until(lambda: is_mesh(cluster), within_s=10)


def test_cluster_forms_again_by_its_host_names_when_addresses_are_swapped() -> None:
    cluster = Cluster(3, config=lambda: config(cluster_node_timeout=5000))
    announce_names(cluster)
    cluster.run(seconds=2)
    ips = [member.ip for member in cluster.members]
    for member in cluster.members:
        member.crash()
    for member, ip in zip(cluster.members, [*ips[1:], ips[0]], strict=True):
        member.restart(ip=ip)
        cluster.network.names[b"node-%d.example" % member.number] = [ip]
    cluster.until(lambda: is_mesh(cluster), within_s=30)


def test_outdated_host_name_of_a_silent_address_delays_reconnection_only_briefly() -> None:
    cluster = Cluster(2)
    announce_names(cluster)
    cluster.run(seconds=2)
    one, moved = cluster.members
    silent = cluster.add()
    silent.ip = moved.ip
    moved.crash()
    one.crash()
    moved.restart(ip=b"10.1.0.2")
    one.restart(ip=b"10.1.0.1")
    cluster.network.listen(silent, PORT + 10000)
    silent.pause()
    cluster.run(seconds=1)
    cluster.network.names[b"node-1.example"] = [one.ip]
    cluster.until(lambda: moved.sees == one.sees == 1 and nodes(one)[moved.id][2] == "connected", within_s=6)
