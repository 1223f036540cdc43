"""Refusing: a second node with the same ID and nodes of other clusters are refused, a restarted node is not."""

from __future__ import annotations

from disqued.bus import kinds
from disqued.bus.extension import NOBODY, cluster_digest, extension
from disqued.bus.gossip import GossipEntry
from disqued.testing.cluster import PORT, Cluster, Member
from disqued.testing.local import LocalNode
from membership.stories import ScriptedNode, config, flags, is_mesh, known, logged, nodes, short_node_timeout


def copy_of(cluster: Cluster, member: Member) -> Member:
    """A further node, started with a copy of the cluster configuration file of `member`."""
    copy = cluster.add()
    copy.host.nodes_text = member.host.nodes_text
    copy.restart()
    return copy


def test_second_node_with_the_id_of_a_live_member_is_refused() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=2)
    one, other, first = cluster.members
    copy = copy_of(cluster, first)
    cluster.run(seconds=50)
    for member in (one, other):
        assert nodes(member)[first.id] == (f"10.0.0.3:{PORT}", "noflags", "connected")
        assert len(logged(member, "another node that is alive has this ID")) == 1, "the warning is logged once a minute"
    assert first.sees == 2
    assert copy.sees == 0 or all(link == "disconnected" for _, words, link in nodes(copy).values() if words != "myself")


def test_copy_is_admitted_when_the_first_node_is_dead() -> None:
    cluster = Cluster(3, config=short_node_timeout)
    cluster.run(seconds=2)
    one, other, first = cluster.members
    copy = copy_of(cluster, first)
    cluster.run(seconds=5)
    first.crash(silent=True)
    cluster.until(lambda: copy.sees == 2 and flags(one, copy) == flags(other, copy) == "noflags", within_s=10)
    cluster.run(seconds=1)
    assert nodes(one)[copy.id][0] == f"10.0.0.4:{PORT}"


def test_node_is_admitted_within_seconds_after_its_host_failed() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=2)
    *_, back = cluster.members
    back.crash(silent=True)
    back.restart(ip=b"10.1.0.3")
    cluster.until(lambda: is_mesh(cluster), within_s=6)


def test_node_that_claims_the_receivers_id_is_refused_with_a_warning() -> None:
    cluster = Cluster(2)
    cluster.run(seconds=2)
    one, _ = cluster.members
    copy = copy_of(cluster, one)
    assert copy.admin.call("CLUSTER", "MEET", one.ip, PORT) == b"OK"
    cluster.run(seconds=5)
    assert logged(one, "it claims the ID of THIS node")
    assert nodes(one)[one.id][0] == f"10.0.0.1:{PORT}"
    assert len(nodes(one)) == 2


def test_node_of_another_cluster_is_refused_by_both_sides() -> None:
    cluster = Cluster(2, config=lambda: config(cluster_name="red"))
    cluster.run(seconds=2)
    one, other = cluster.members
    blue = Cluster(1, config=lambda: config(cluster_name="blue"), network=cluster.network)
    [scripted] = blue.members
    cluster.network.unlisten(one, PORT + 10000)
    cluster.network.listen(one, PORT + 10000)
    scripted.ip = b"10.2.0.1"
    cluster.network.listen(scripted, PORT + 10000)
    cluster.members.append(scripted)
    ids = {one.id, other.id}
    assert scripted.admin.call("CLUSTER", "MEET", one.ip, PORT) == b"OK"
    assert other.admin.call("CLUSTER", "MEET", scripted.ip, PORT) == b"OK"
    cluster.run(seconds=20)
    assert known(one) == known(other) == ids
    assert known(scripted) == {scripted.id}
    assert logged(one, "another cluster")
    assert logged(scripted, "another cluster")


def test_node_without_a_cluster_name_can_join_any_cluster() -> None:
    cluster = Cluster(2, config=lambda: config(cluster_name="red"))
    old = cluster.add()
    assert old.admin.call("CONFIG", "SET", "cluster-name", "") == b"OK"
    assert old.admin.call("CLUSTER", "MEET", "10.0.0.1", PORT) == b"OK"
    cluster.until(lambda: is_mesh(cluster), within_s=10)


def test_member_loses_an_address_that_another_cluster_took_over() -> None:
    cluster = Cluster(3, config=lambda: config(cluster_name="red", cluster_node_timeout=2000))
    cluster.run(seconds=2)
    one, other, gone = cluster.members
    gone.crash()
    reused = cluster.add()
    assert reused.admin.call("CONFIG", "SET", "cluster-name", "blue") == b"OK"
    reused.ip = gone.ip
    cluster.network.listen(reused, PORT + 10000)
    cluster.run(seconds=5)
    assert nodes(one)[gone.id][1:] == ("fail", "disconnected")
    assert known(reused) == {reused.id}
    cluster.network.unlisten(reused, PORT + 10000)
    reused.crash()
    gone.restart(ip=b"10.1.0.3")
    cluster.until(lambda: is_mesh(cluster), within_s=10)
    assert {member.sees for member in (one, other, gone)} == {2}


def test_nothing_is_learned_from_the_gossip_of_another_cluster() -> None:
    local = LocalNode(config(cluster_name="red"))
    announced = extension(0, 17711, cluster_digest(b"blue"), b"another!")
    scripted = ScriptedNode(local, b"10.0.0.9", extension=announced)
    news = GossipEntry(b"c" * 40, 0, 0, b"10.0.0.8", 7711, 0).encode()
    scripted.send_gossip(kinds.MEET, news)
    assert scripted.link.refused
    assert scripted.link.closed
    assert scripted.received(kinds.PONG) == []
    assert local.node.state.view.peers == {}
    assert local.node.state.view.ip == b""


def test_two_runs_of_one_node_on_one_connection_are_refused() -> None:
    local = LocalNode()
    scripted = ScriptedNode(local, b"10.0.0.9", extension=extension(0, 17711, NOBODY, b"run-one!"))
    scripted.join()
    local.run(milliseconds=1200)
    scripted.send_pong()
    other = ScriptedNode(local, b"10.0.0.9", extension=extension(0, 17711, NOBODY, b"run-two!"))
    other.send_pong()
    assert other.dialed_link is None or other.dialed_link.created_ms == local.now_ms
    assert local.node.state.view.peers[scripted.id].incarnation == b"run-one!"


def test_refusals_of_invented_ids_are_logged_once_per_address_and_minute() -> None:
    local = LocalNode()

    def knock(ip: bytes) -> list[tuple[str, str]]:
        before = len(local.host.log_lines)
        for number in range(1000):
            ScriptedNode(local, ip, node_id=b"no ID %034x" % number).send_gossip(kinds.PING)
        return local.host.log_lines[before:]

    refused = "A node at 10.0.0.9 is refused: its ID is not one of 40 hexadecimal digits"
    assert knock(b"10.0.0.9") == [("warning", refused)]
    assert knock(b"10.0.0.9") == []
    assert len(knock(b"10.0.0.8")) == 1
    local.run(seconds=61)
    assert knock(b"10.0.0.9") == [("warning", refused)]
