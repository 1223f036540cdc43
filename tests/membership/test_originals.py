"""Membership with nodes of the original, which announce no features and get only messages of the original."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.bus.gossip import GossipEntry, gossip_of
from disqued.testing.local import LocalNode
from membership.stories import ScriptedNode, config
from support.asking import ask

MEMBER = b"c" * 40


def lines(local: LocalNode) -> dict[str, list[str]]:
    """The words of CLUSTER NODES by ID."""
    text = ask(local.client(), "CLUSTER", "NODES").decode()
    return {line.split()[0]: line.split()[1:] for line in text.splitlines()}


def entry(
    node_id: bytes = MEMBER, ip: bytes = b"10.0.0.8", port: int = 7711, flags: int = 0, bus_port: int = 0
) -> bytes:
    """One gossip entry, encoded."""
    return GossipEntry(node_id, 0, 0, ip, port, flags, bus_port).encode()


@pytest.fixture
def local() -> LocalNode:
    """A node that suspects others after a second."""
    return LocalNode(config(cluster_node_timeout=1000))


@pytest.fixture
def original(local: LocalNode) -> ScriptedNode:
    """A scripted node of the original."""
    return ScriptedNode(local, b"10.0.0.9")


def test_original_that_sends_meet_becomes_a_member_when_it_answers(local: LocalNode, original: ScriptedNode) -> None:
    original.send_gossip(kinds.MEET)
    assert [pong.sender for pong in original.received(kinds.PONG)] == [local.node.state.view.node_id]
    assert [words[1] for words in lines(local).values()] == ["myself", "handshake"]
    local.run(milliseconds=200)
    original.send_pong()
    assert lines(local)[original.id.decode()][:2] == ["10.0.0.9:7711", "noflags"]
    assert local.node.state.view.ip == b"10.0.0.1"


def test_ping_of_an_original_is_answered_but_does_not_add_it(local: LocalNode, original: ScriptedNode) -> None:
    original.send_gossip(kinds.PING, entry())
    assert len(original.received(kinds.PONG)) == 1
    assert len(lines(local)) == 1


def test_original_gets_no_messages_that_it_does_not_know(local: LocalNode, original: ScriptedNode) -> None:
    original.join()
    ask(local.client(), "CONFIG", "SET", "cluster-announce-hostname", "one.example")
    ask(local.client(), "CONFIG", "SET", "cluster-announce-external", "out.example:30000")
    local.run(milliseconds=500)
    original.send_pong()
    local.run(milliseconds=500)
    link = original.dialed_link
    assert link is not None
    assert not {kinds.HOST, kinds.EXTERNAL} & {int.from_bytes(frame[12:14], "big") for frame in link.out}
    assert sum(traffic.sent.value for traffic in local.node.state.traffic[kinds.HOST :]) == 0


def test_leaving_flag_of_an_original_is_set_and_cleared(local: LocalNode, original: ScriptedNode) -> None:
    original.join()
    for leaving in (True, False):
        original.writer = type(original.writer)(original.id, 7711, leaving=leaving)
        original.send_gossip(kinds.PING)
        assert (lines(local)[original.id.decode()][1] == "leaving") == leaving
        assert len(local.node.state.view.reachable) == (0 if leaving else 1)


def test_ping_from_a_new_address_updates_the_address_of_an_original(local: LocalNode, original: ScriptedNode) -> None:
    original.join()
    original.ip = b"10.0.0.10"
    original.connect()
    original.send_gossip(kinds.PING)
    assert lines(local)[original.id.decode()][0] == "10.0.0.10:7711"


def test_original_has_no_address_while_another_node_uses_it(local: LocalNode, original: ScriptedNode) -> None:
    original.join()
    other = ScriptedNode(local, original.ip, node_id=MEMBER)
    other.send_pong()
    assert lines(local)[original.id.decode()] == [
        ":0",
        "noaddr",
        "0",
        lines(local)[original.id.decode()][3],
        "disconnected",
    ]
    assert local.node.state.view.reachable == []
    original.send_gossip(kinds.PING)
    assert lines(local)[original.id.decode()][:2] == ["10.0.0.9:7711", "noflags"]


def test_member_in_the_gossip_of_an_original_is_met(local: LocalNode, original: ScriptedNode) -> None:
    original.join()
    original.send_gossip(kinds.PING, entry(bus_port=19000))
    [peer] = [peer for peer in local.node.state.view.peers.values() if peer.in_handshake]
    assert (peer.ip, peer.port, peer.bus_port) == (b"10.0.0.8", 7711, 19000)


def test_failure_report_of_an_original_counts(local: LocalNode, original: ScriptedNode) -> None:
    original.join()
    third = ScriptedNode(local, b"10.0.0.8", node_id=MEMBER)
    third.join()
    for _ in range(20):
        local.run(milliseconds=100)
        original.send_pong()
    assert lines(local)[MEMBER.decode()][1] == "fail?"
    original.send_gossip(kinds.PING, entry(flags=kinds.NODE_PFAIL))
    assert lines(local)[MEMBER.decode()][1] == "fail"
    local.run(milliseconds=200)
    third.send_pong()
    assert lines(local)[MEMBER.decode()][1] == "noflags"


def test_single_and_withdrawn_failure_reports_do_not_count(local: LocalNode, original: ScriptedNode) -> None:
    original.join()
    third = ScriptedNode(local, b"10.0.0.8", node_id=MEMBER)
    third.join()
    original.send_gossip(kinds.PING, entry(flags=kinds.NODE_FAIL))
    assert lines(local)[MEMBER.decode()][1] == "noflags"
    original.send_gossip(kinds.PING, entry())
    assert local.node.state.view.peers[MEMBER].reports == {}


def test_fail_message_of_an_original_marks_the_node_failed(local: LocalNode, original: ScriptedNode) -> None:
    original.join()
    ScriptedNode(local, b"10.0.0.8", node_id=MEMBER).join()
    local.run(seconds=12)  # it is silent, and not suspected yet
    original.deliver(original.link, original.writer.fail(MEMBER))
    assert lines(local)[MEMBER.decode()][1] == "fail"
    original.deliver(original.link, original.writer.fail(local.node.state.view.node_id))
    original.deliver(original.link, original.writer.fail(b"d" * 40))
    assert len(lines(local)) == 3


def test_fail_from_an_unknown_node_is_ignored(local: LocalNode, original: ScriptedNode) -> None:
    original.join()
    scripted = ScriptedNode(local, b"10.0.0.7")
    scripted.deliver(scripted.link, scripted.writer.fail(original.id))
    scripted.send_gossip(kinds.PING, entry())
    scripted.deliver(scripted.link, scripted.writer.gossip(kinds.PONG, [entry()], 0))
    assert lines(local)[original.id.decode()][1] == "noflags"
    assert len(lines(local)) == 2


def test_gossip_lists_failing_nodes_first() -> None:
    local = LocalNode()
    original = ScriptedNode(local, b"10.0.0.9")
    original.join()
    for number in range(10):
        ScriptedNode(local, b"10.0.1.%d" % number, node_id=b"%040x" % number).join()
    local.node.state.view.peers[b"%040x" % 7].flags |= kinds.NODE_PFAIL
    original.send_gossip(kinds.PING)
    entries = gossip_of(original.received(kinds.PONG)[-1])
    assert len(entries) == 3
    assert entries[0].node_id == b"%040x" % 7
    assert entries[0].flags == kinds.NODE_PFAIL


@pytest.mark.parametrize(
    "invalid",
    [
        entry(node_id=b"G" * 40),
        entry(node_id=b"C" * 40),
        entry(node_id=bytes(40)),
        entry(ip=b""),
        entry(ip=b"not-an-ip"),
        entry(ip=b"10.0.0.8.9"),
        entry(ip=b"fe80::1%eth0"),
        entry(ip=b"\xff" * 46),
        entry(port=0),
        entry(port=60000),
        entry(flags=kinds.NODE_NOADDR),
    ],
)
def test_invalid_gossip_is_ignored(local: LocalNode, original: ScriptedNode, invalid: bytes) -> None:
    original.join()
    original.send_gossip(kinds.PING, invalid)
    assert len(lines(local)) == 2
    assert not local.host.log_lines or "BUG" not in str(local.host.log_lines)


def test_gossip_of_a_thousand_nodes_makes_few_handshakes_and_no_member(
    local: LocalNode, original: ScriptedNode
) -> None:
    original.join()
    made_up = [entry(b"%040x" % number, b"10.1.%d.%d" % (number // 256, number % 256)) for number in range(1, 1001)]
    original.send_gossip(kinds.PING, *made_up)
    assert len(lines(local)) <= 66
    for _ in range(15):
        local.run(milliseconds=100)
        original.send_pong()
    assert len(lines(local)) == 2


def test_node_that_claims_the_receivers_id_is_refused(local: LocalNode) -> None:
    scripted = ScriptedNode(local, b"10.0.0.9", node_id=local.node.state.view.node_id)
    scripted.send_gossip(kinds.MEET)
    assert scripted.link.closed
    assert len(lines(local)) == 1


def test_forgotten_node_does_not_return_under_the_address_of_another_one(
    local: LocalNode, original: ScriptedNode
) -> None:
    original.join()
    ScriptedNode(local, b"10.0.0.8", node_id=MEMBER).join()
    client = local.client()
    assert ask(client, "CLUSTER", "FORGET", MEMBER) == b"OK"
    for met in (False, True):
        original.send_gossip(kinds.PING, entry(node_id=b"d" * 40, ip=b"10.0.0.8"))
        if met:
            ask(client, "CLUSTER", "MEET", "10.0.0.8", 7711)
        local.run(milliseconds=100)
        ScriptedNode(local, b"10.0.0.8", node_id=MEMBER).send_pong()
        assert (MEMBER.decode() in lines(local)) == met
