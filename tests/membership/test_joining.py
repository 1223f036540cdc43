"""Joining: how nodes form a cluster, and what does not make a node a member."""

from __future__ import annotations

from disqued.membership.announcing import announce
from disqued.membership.kept import membership_of
from disqued.testing.cluster import PORT, Cluster
from membership.stories import figures, is_mesh, known, nodes, short_node_timeout


def test_chained_meets_form_a_full_mesh() -> None:
    cluster = Cluster(5, meet=False)
    for one, other in zip(cluster.members, cluster.members[1:], strict=False):
        assert one.admin.call("CLUSTER", "MEET", other.ip, PORT) == b"OK"
    cluster.until(lambda: is_mesh(cluster), within_s=10)
    assert [figures(member)["cluster_links_up"] for member in cluster.members] == ["4"] * 5
    assert [figures(member)["cluster_size"] for member in cluster.members] == ["5"] * 5


def test_nodes_learn_their_own_address_from_others() -> None:
    cluster = Cluster(2)
    cluster.run(seconds=2)
    for member in cluster.members:
        assert nodes(member)[member.id] == (f"{member.ip.decode()}:{PORT}", "myself", "connected")


def test_every_node_saves_all_members() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=2)
    for member in cluster.members:
        lines = [line.split() for line in member.host.nodes_text.splitlines()]
        assert {words[0].encode() for words in lines} == {other.id for other in cluster.members}
        assert {len(words) for words in lines} == {6}


def test_meet_with_its_own_address_adds_no_node_and_sets_the_address() -> None:
    cluster = Cluster(1)
    [member] = cluster.members
    assert member.admin.call("CLUSTER", "MEET", member.ip, PORT) == b"OK"
    cluster.run(seconds=1)
    assert nodes(member) == {member.id: (f"10.0.0.1:{PORT}", "myself", "connected")}


def test_handshake_ends_when_no_node_answers() -> None:
    cluster = Cluster(1, config=short_node_timeout)
    [member] = cluster.members
    for _ in range(3):
        assert member.admin.call("CLUSTER", "MEET", "10.9.9.9", PORT) == b"OK"
    assert sorted(words for _, words, _ in nodes(member).values()) == ["handshake", "myself"]
    assert figures(member)["cluster_known_nodes"] == "2"
    assert figures(member)["cluster_size"] == "1"
    cluster.run(seconds=2)
    assert len(nodes(member)) == 1


def test_node_with_its_own_bus_port_is_met_there() -> None:
    cluster = Cluster(2, meet=False)
    one, other = cluster.members
    other.config.cluster_announce_bus_port = 9000
    announce(membership_of(other.node.state))
    cluster.network.unlisten(other, PORT + 10000)
    cluster.network.listen(other, 9000)
    assert one.admin.call("CLUSTER", "MEET", other.ip, PORT, 9000) == b"OK"
    cluster.until(lambda: is_mesh(cluster), within_s=5)
    cluster.run(seconds=1)
    assert f"vars node {other.id.decode()} bus-port 9000\n" in one.host.nodes_text
    third = cluster.add()
    assert third.admin.call("CLUSTER", "MEET", one.ip, PORT) == b"OK"
    cluster.until(lambda: is_mesh(cluster), within_s=10)


def test_meeting_a_member_changes_nothing() -> None:
    cluster = Cluster(2)
    one, other = cluster.members
    cluster.run(seconds=1)
    before = nodes(one)
    assert one.admin.call("CLUSTER", "MEET", other.ip, PORT) == b"OK"
    cluster.run(seconds=1)
    assert nodes(one) == before


def test_a_new_member_is_connected_both_ways_within_seconds() -> None:
    cluster = Cluster(3)
    late = cluster.add()
    assert late.admin.call("CLUSTER", "MEET", cluster.members[1].ip, PORT) == b"OK"
    cluster.until(lambda: is_mesh(cluster), within_s=5)
    assert known(late) == {member.id for member in cluster.members}


def test_a_node_that_is_met_before_it_runs_becomes_a_member_on_both_sides() -> None:
    cluster = Cluster(2, meet=False)
    one, late = cluster.members
    late.crash()
    assert one.admin.call("CLUSTER", "MEET", late.ip, PORT) == b"OK"
    cluster.run(seconds=5)
    late.restart()
    cluster.until(lambda: is_mesh(cluster), within_s=5)
