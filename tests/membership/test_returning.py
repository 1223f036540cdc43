"""Nodes return after restarts, with new addresses or empty disks, by nodes.conf, seeds and host names."""

from __future__ import annotations

import pytest

from disqued.config import Config
from disqued.testing.cluster import PORT, Cluster
from membership.stories import config, figures, flags, is_mesh, known, nervous, nodes


def seeded() -> Config:
    """Nodes that find each other by one name."""
    return config(cluster_seeds=("disque.example",), cluster_node_timeout=5000)


def name_all(cluster: Cluster) -> None:
    """Have the seed's name stand for all members."""
    cluster.network.names[b"disque.example"] = [member.ip for member in cluster.members]


def move_all(cluster: Cluster) -> None:
    """Restart everybody under a new address; nobody has an old one."""
    for member in cluster.members:
        member.crash()
    for member in cluster.members:
        member.restart(ip=b"10.1.0.%d" % member.number)
    cluster.run(milliseconds=10)


def test_a_restarted_node_is_who_it_was_and_needs_no_meet() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=1)
    *_, back = cluster.members
    before = back.id
    back.restart()
    cluster.run(milliseconds=10)
    assert back.id == before
    cluster.until(lambda: is_mesh(cluster), within_s=3)


def test_all_restarted_at_once_find_each_other() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=1)
    for member in cluster.members:
        member.crash()
    for member in cluster.members:
        member.restart()
    cluster.run(milliseconds=10)
    cluster.until(lambda: is_mesh(cluster), within_s=3)


def test_a_node_that_moved_is_found_by_its_pings() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=1)
    one, other, moved = cluster.members
    moved.restart(ip=b"10.1.0.3")
    cluster.run(milliseconds=10)
    cluster.until(lambda: is_mesh(cluster), within_s=3)
    assert nodes(one)[moved.id][0] == nodes(other)[moved.id][0] == f"10.1.0.3:{PORT}"
    cluster.until(lambda: nodes(moved)[moved.id][0] == f"10.1.0.3:{PORT}", within_s=2)


def test_a_node_without_its_file_comes_back_as_a_new_one_beside_the_old() -> None:
    cluster = Cluster(3, config=nervous)
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


def test_a_name_that_nobody_knows_yet_is_asked_for_again() -> None:
    cluster = Cluster(2, meet=False, config=seeded)
    cluster.run(seconds=60)
    assert [len(known(member)) for member in cluster.members] == [1, 1]
    name_all(cluster)
    cluster.until(lambda: is_mesh(cluster), within_s=10)


def test_seeds_may_be_addresses_with_ports() -> None:
    cluster = Cluster(3, meet=False, config=lambda: config(cluster_seeds=("10.0.0.1:7711", "10.0.0.2:7711@17711")))
    cluster.until(lambda: is_mesh(cluster), within_s=10)


def test_once_all_seeds_are_members_the_cluster_is_quiet() -> None:
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
    assert known(cluster.members[0]) == ids, "they are the same members, each once"


def test_addresses_may_be_swapped() -> None:
    cluster = Cluster(3, meet=False, config=seeded)
    name_all(cluster)
    cluster.until(lambda: is_mesh(cluster), within_s=20)
    ips = [member.ip for member in cluster.members]
    for member in cluster.members:
        member.crash()
    for member, ip in zip(cluster.members, [*ips[1:], ips[0]], strict=True):
        member.restart(ip=ip)
    cluster.until(lambda: is_mesh(cluster), within_s=30)


def announcing(cluster: Cluster) -> None:
    """Give all members host names."""
    for member in cluster.members:
        name = b"node-%d.example" % member.number
        cluster.network.names[name] = [member.ip]
        assert member.admin.call("CONFIG", "SET", "cluster-announce-hostname", name) == b"OK"


def test_a_cluster_whose_members_all_move_forms_again_by_their_host_names() -> None:
    cluster = Cluster(3, config=lambda: config(cluster_node_timeout=5000))
    announcing(cluster)
    cluster.run(seconds=2)
    move_all(cluster)
    cluster.run(seconds=3)
    for member in cluster.members:
        cluster.network.names[b"node-%d.example" % member.number] = [member.ip]
    cluster.until(lambda: is_mesh(cluster), within_s=30)
    assert {address for address, _, _ in nodes(cluster.members[0]).values()} >= {"10.1.0.2:7711", "10.1.0.3:7711"}


def test_a_name_that_does_not_resolve_leaves_the_address() -> None:
    cluster = Cluster(2)
    announcing(cluster)
    cluster.run(seconds=2)
    cluster.network.names.clear()
    for member in cluster.members:
        member.restart()
    cluster.run(milliseconds=10)
    cluster.until(lambda: is_mesh(cluster), within_s=10)


def test_swapped_addresses_are_no_obstacle_to_names() -> None:
    cluster = Cluster(3, config=lambda: config(cluster_node_timeout=5000))
    announcing(cluster)
    cluster.run(seconds=2)
    ips = [member.ip for member in cluster.members]
    for member in cluster.members:
        member.crash()
    for member, ip in zip(cluster.members, [*ips[1:], ips[0]], strict=True):
        member.restart(ip=ip)
        cluster.network.names[b"node-%d.example" % member.number] = [ip]
    cluster.until(lambda: is_mesh(cluster), within_s=30)


def test_a_name_that_still_stands_for_a_place_where_nothing_answers_delays_little() -> None:
    cluster = Cluster(2)
    announcing(cluster)
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
