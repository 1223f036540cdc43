"""The address, the host name and the ports that a node announces."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.bus.extension import NOBODY, cluster_digest, extension
from disqued.membership.announcing import announce
from disqued.membership.hostname import FEATURE_HOST
from disqued.membership.kept import membership_of
from disqued.testing.cluster import PORT, Cluster, Member
from disqued.testing.local import LocalNode
from membership.stories import ScriptedNode, config, is_mesh, nodes
from support.asking import ask


def host_of(member: Member, other: Member) -> object:
    """The host that one node tells clients to connect to for another node."""
    return {row[0]: row[1] for row in ask(member.admin, "HELLO")[2:]}[other.id]


def test_announced_name_reaches_all_nodes_and_clients() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=1)
    one, other, third = cluster.members
    cluster.network.names[b"one.example"] = [one.ip]
    assert one.admin.call("CONFIG", "SET", "cluster-announce-hostname", "one.example") == b"OK"
    cluster.run(seconds=1)
    assert [host_of(member, one) for member in cluster.members] == [b"one.example"] * 3
    assert host_of(one, other) == b"10.0.0.2"
    assert nodes(other)[one.id][0] == f"10.0.0.1:{PORT}", "CLUSTER NODES shows the address"
    assert f"vars node {one.id.decode()} host one.example\n" in third.host.nodes_text
    cluster.run(seconds=30)
    assert is_mesh(cluster)


def test_changed_and_removed_names_are_announced() -> None:
    cluster = Cluster(2)
    one, other = cluster.members
    for name in ("one.example", "uno.example", ""):
        assert one.admin.call("CONFIG", "SET", "cluster-announce-hostname", name) == b"OK"
        cluster.run(milliseconds=300)
        assert host_of(other, one) == (name.encode() or one.ip)
    other.crash()
    one.admin.call("CONFIG", "SET", "cluster-announce-hostname", "one.example")
    other.restart()
    cluster.until(lambda: host_of(other, one) == b"one.example", within_s=5)


def test_name_is_announced_again_to_a_node_that_got_it_too_early() -> None:
    cluster = Cluster(2, meet=False)
    one, other = cluster.members
    one.admin.call("CONFIG", "SET", "cluster-announce-hostname", "one.example")
    assert one.admin.call("CLUSTER", "MEET", other.ip, PORT) == b"OK"
    cluster.until(lambda: other.id in one.node.state.view.peers, within_s=1)
    cluster.cut(other, one)
    cluster.until(lambda: bool(cluster.sent("HOST", by=one)), within_s=1)
    assert one.id not in other.node.state.view.peers, "its own handshake is delayed"
    cluster.repair(other, one)
    cluster.run(seconds=9)
    assert host_of(other, one) == b"one.example"


def test_a_restarted_node_still_knows_the_names_of_others() -> None:
    cluster = Cluster(2)
    one, other = cluster.members
    one.admin.call("CONFIG", "SET", "cluster-announce-hostname", "one.example")
    cluster.run(seconds=1)
    one.crash()
    other.restart()
    assert host_of(other, one) == b"one.example"


def test_announced_address_is_kept_whichever_address_connections_use() -> None:
    cluster = Cluster(2, meet=False)
    one, other = cluster.members
    assert one.admin.call("CONFIG", "SET", "cluster-announce-ip", "10.0.0.1") == b"OK"
    assert one.admin.call("CONFIG", "SET", "cluster-announce-port", 9999) == b"OK"
    one.config.cluster_announce_bus_port = PORT + 10000
    announce(membership_of(one.node.state))
    one.ip = b"192.168.0.1"
    assert one.admin.call("CLUSTER", "MEET", other.ip, PORT) == b"OK"
    cluster.run(seconds=3)
    assert nodes(other)[one.id] == ("10.0.0.1:9999", "noflags", "connected")
    assert nodes(one)[one.id][0] == "10.0.0.1:9999"
    assert nodes(one)[other.id][0] == f"10.0.0.2:{PORT}"


def test_new_client_port_is_announced_without_a_new_connection() -> None:
    cluster = Cluster(7)
    one, *_, other = cluster.members
    cluster.run(seconds=1)
    link = other.node.state.view.peers[one.id].link
    one.config.cluster_announce_bus_port = PORT + 10000
    assert one.admin.call("CONFIG", "SET", "cluster-announce-port", 1234) == b"OK"
    cluster.run(milliseconds=200)
    assert nodes(other)[one.id][0] == "10.0.0.1:1234"
    assert other.node.state.view.peers[one.id].link is link


def test_every_frame_carries_the_announced_values() -> None:
    local = LocalNode(config(cluster_name="red", cluster_announce_ip="10.1.1.1", cluster_announce_bus_port=18000))
    scripted = ScriptedNode(local, b"10.0.0.9")
    scripted.send_gossip(kinds.PING)
    [pong] = scripted.received(kinds.PONG)
    assert (pong.announced_ip, pong.port, pong.bus_port) == (b"10.1.1.1", 7711, 18000)
    assert pong.cluster == cluster_digest(b"red")
    assert pong.incarnation == local.node.state.incarnation != NOBODY
    assert pong.clock_ms == local.now_ms
    assert pong.features & FEATURE_HOST


@pytest.mark.parametrize("payload", [b"", b"no name", b"x" * 300, b"\xff", b"a\nb", b"-", b"name.example\0"])
def test_invalid_host_names_are_ignored(payload: bytes) -> None:
    local = LocalNode()
    scripted = ScriptedNode(local, b"10.0.0.9", extension=extension(FEATURE_HOST, 17711, NOBODY, b"only-run"))
    scripted.join()
    scripted.deliver(scripted.link, scripted.writer.other(kinds.HOST, b"good.example"))
    scripted.deliver(scripted.link, scripted.writer.other(kinds.HOST, payload))
    assert local.node.state.view.peers[scripted.id].host == (b"good.example" if payload else b"")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cluster-announce-ip", "not-an-address"),
        ("cluster-announce-hostname", "two words"),
        ("cluster-announce-port", "65536"),
        ("cluster-announce-bus-port", "-1"),
        ("cluster-seeds", "good.example bad:port"),
        ("cluster-seeds", "host:7711@"),
        ("cluster-seeds", "[not-ipv6]:7711"),
        ("cluster-link-sendbuf-limit", "0"),
    ],
)
def test_invalid_values_are_refused(name: str, value: str) -> None:
    reply = LocalNode().client().raw("CONFIG", "SET", name, value)
    assert reply == f"-ERR Invalid argument '{value}' for CONFIG SET '{name}'\r\n".encode()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cluster-announce-ip", "fd00::1"),
        ("cluster-announce-hostname", "node-1.disque.svc.example."),
        ("cluster-announce-port", "443"),
        ("cluster-announce-bus-port", "444"),
        ("cluster-seeds", "disque.example 10.0.0.1 10.0.0.2:7711 [fd00::1]:7711@17000 fd00::2"),
        ("cluster-name", "a name with blanks"),
        ("cluster-link-sendbuf-limit", "1048576"),
    ],
)
def test_valid_values_are_shown_and_written_to_the_file(name: str, value: str) -> None:
    local = LocalNode()
    client = local.client()
    local.host.config_text = ""
    assert client.raw("CONFIG", "SET", name, value) == b"+OK\r\n"
    assert ask(client, "CONFIG", "GET", name) == [name.encode(), value.encode()]
    assert client.raw("CONFIG", "REWRITE") == b"+OK\r\n"
    assert name in local.host.config_text
