"""The zone that a node announces."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.bus.extension import NOBODY, extension
from disqued.membership.zone import FEATURE_ZONE
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalNode
from membership.stories import ScriptedNode, figures
from support.asking import ask


def set_zone(member: Member, zone: str) -> None:
    assert member.admin.call("CONFIG", "SET", "cluster-zone", zone) == b"OK"


def zones(member: Member) -> tuple[str | None, str | None]:
    """The zone of a member, and what it knows about the zones of all."""
    found = figures(member)
    return found.get("cluster_zone"), found.get("cluster_zones")


def test_zone_reaches_all_nodes() -> None:
    cluster = Cluster(3)
    for member, zone in zip(cluster.members, ("a", "a", "b"), strict=True):
        set_zone(member, zone)
    cluster.run(milliseconds=300)
    assert [zones(member) for member in cluster.members] == [("a", "a=2,b=1"), ("a", "a=2,b=1"), ("b", "a=2,b=1")]


def test_changed_and_removed_zones_are_announced() -> None:
    cluster = Cluster(2)
    one, other = cluster.members
    for zone, known in (("a", "a=1"), ("b", "b=1"), ("", None)):
        set_zone(one, zone)
        cluster.run(milliseconds=300)
        assert zones(other)[1] == known


def test_zone_that_changed_while_the_nodes_were_disconnected_is_announced() -> None:
    cluster = Cluster(2)
    one, other = cluster.members
    set_zone(one, "a")
    cluster.run(milliseconds=300)
    cluster.partition([one], [other])
    cluster.run(seconds=20)
    set_zone(one, "")
    cluster.heal()
    cluster.run(seconds=20)
    assert zones(other)[1] is None


def test_a_restarted_node_has_no_zone_until_it_announces_one() -> None:
    cluster = Cluster(2)
    one, other = cluster.members
    set_zone(one, "a")
    cluster.run(milliseconds=300)
    one.config.cluster_zone = ""
    one.restart()
    cluster.until(cluster.is_whole)
    cluster.run(seconds=1)
    assert zones(other)[1] is None
    set_zone(one, "b")
    cluster.run(milliseconds=300)
    assert zones(other)[1] == "b=1"


def test_a_restarted_node_learns_the_zones_of_the_others() -> None:
    cluster = Cluster(2)
    one, other = cluster.members
    set_zone(one, "a")
    cluster.run(milliseconds=300)
    other.restart()
    cluster.until(lambda: zones(other)[1] == "a=1", within_s=5)


def test_nodes_without_zones_send_nothing_about_them() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=30)
    assert not cluster.sent("ZONE")
    assert "cluster_zones" not in figures(cluster.members[0])


def test_original_is_not_sent_a_zone() -> None:
    local = LocalNode()
    original = ScriptedNode(local, b"10.0.0.9")
    original.join()
    ask(local.client(), "CONFIG", "SET", "cluster-zone", "a")
    local.run(milliseconds=300)
    original.collect()
    link = original.dialed_link
    assert link is not None
    assert kinds.ZONE not in link.told


@pytest.mark.parametrize("payload", [b"", b"two words", b"x" * 64, b"\xff", b"a\nb", b"a\0"])
def test_invalid_zones_are_ignored(payload: bytes) -> None:
    local = LocalNode()
    scripted = ScriptedNode(local, b"10.0.0.9", extension=extension(FEATURE_ZONE, 17711, NOBODY, b"only-run"))
    scripted.join()
    for zone in (b"eu-1.a_2", payload):
        scripted.deliver(scripted.link, scripted.writer.other(kinds.ZONE, zone))
    assert local.node.state.view.peers[scripted.id].zone == (b"eu-1.a_2" if payload else b"")


@pytest.mark.parametrize(
    ("zone", "accepted"), [("eu-west-1a", True), ("", True), ("two words", False), ("x" * 64, False)]
)
def test_zone_is_a_short_word(zone: str, accepted: bool) -> None:
    client = LocalNode().client()
    reply = client.raw("CONFIG", "SET", "cluster-zone", zone)
    assert reply.startswith(b"+OK" if accepted else b"-ERR Invalid argument")
    assert ask(client, "CONFIG", "GET", "cluster-zone")[1] == (zone.encode() if accepted else b"")
