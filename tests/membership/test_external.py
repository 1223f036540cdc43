"""External addresses: HELLO tells clients outside of the network of the nodes where they reach each node."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.bus.extension import NOBODY, extension
from disqued.membership.external import FEATURE_EXTERNAL, LONGEST, address_of
from disqued.testing.cluster import PORT, Cluster, Member
from disqued.testing.local import LocalNode
from membership.stories import ScriptedNode
from support.asking import ask


def seen_by(member: Member, *, external: bool, tls: bool = False) -> dict[bytes, tuple[bytes, bytes]]:
    """Return the addresses that HELLO shows a client, by node ID."""
    member.admin.session.external, member.admin.session.tls = external, tls
    rows = ask(member.admin, "HELLO")[2:]
    return {row[0]: (row[1], row[2]) for row in rows}


def announced(cluster: Cluster) -> None:
    for number, member in enumerate(cluster.members):
        assert member.admin.call("CONFIG", "SET", "cluster-announce-external", f"out.example:3000{number}@3100{number}")
    cluster.run(seconds=1)


def test_clients_inside_and_outside_each_get_their_addresses() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=1)
    announced(cluster)
    ids = [member.id for member in cluster.members]
    for member in cluster.members:
        inside = {node: (other.ip, str(PORT).encode()) for node, other in zip(ids, cluster.members, strict=True)}
        assert seen_by(member, external=False) == inside
        outside = {node: (b"out.example", b"3000%d" % number) for number, node in enumerate(ids)}
        assert seen_by(member, external=True) == outside
        encrypted = {node: (b"out.example", b"3100%d" % number) for number, node in enumerate(ids)}
        assert seen_by(member, external=True, tls=True) == encrypted


def test_changed_and_removed_addresses_are_announced() -> None:
    cluster = Cluster(2)
    cluster.run(seconds=1)
    announced(cluster)
    one, other = cluster.members
    one.admin.call("CONFIG", "SET", "cluster-announce-external", "[2001:db8::7]:4000")
    cluster.run(seconds=1)
    assert seen_by(other, external=True)[one.id] == (b"2001:db8::7", b"4000")
    one.admin.call("CONFIG", "SET", "cluster-announce-external", "")
    cluster.run(seconds=1)
    assert seen_by(other, external=True)[one.id] == (one.ip, str(PORT).encode()), "there is no better one"


def test_restarted_node_learns_the_addresses_again() -> None:
    cluster = Cluster(2)
    cluster.run(seconds=1)
    announced(cluster)
    one, other = cluster.members
    other.restart()
    cluster.until(lambda: seen_by(other, external=True)[one.id] == (b"out.example", b"30000"), within_s=5)


@pytest.mark.parametrize("wrong", ["out.example", "out.example:", ":30000", "a b:1", "out.example:0", "x:70000"])
def test_wrong_address_is_refused(wrong: str) -> None:
    reply = LocalNode().client().raw("CONFIG", "SET", "cluster-announce-external", wrong)
    assert reply == f"-ERR Invalid argument '{wrong}' for CONFIG SET 'cluster-announce-external'\r\n".encode()


@pytest.mark.parametrize("wrong", [b"out.example", b"\xff:1", b"a:1@0", b"a" * LONGEST + b":1"])
def test_wrong_address_of_another_node_is_ignored(wrong: bytes) -> None:
    assert address_of(wrong) is None
    local = LocalNode()
    scripted = ScriptedNode(local, b"10.0.0.9", extension=extension(FEATURE_EXTERNAL, 17711, NOBODY, b"only-run"))
    scripted.join()
    scripted.deliver(scripted.link, scripted.writer.other(kinds.EXTERNAL, b"good.example:1"))
    scripted.deliver(scripted.link, scripted.writer.other(kinds.EXTERNAL, wrong))
    assert local.node.state.view.peers[scripted.id].external == b"good.example:1"
