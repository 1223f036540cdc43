"""A node survives any membership frames, and what it shows and saves stays well formed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disqued.bus import kinds
from disqued.bus.extension import EXTENSION_BYTES, MARKER, NOBODY, extension
from disqued.bus.frame import GOSSIP_ENTRY_BYTES
from disqued.membership.nodesconf import decode
from disqued.node import ROOMS
from disqued.testing.local import LocalNode
from membership.stories import ScriptedNode, config
from support.asking import ask

IDS = [b"a" * 40, b"b" * 40, b"A" * 40, b"\xff" * 40, b"a b\n" * 10, bytes(40)]
EXTENSIONS = st.one_of(
    st.just(extension(ROOMS.features, 17711, NOBODY, b"one run!")),
    st.just(bytes(EXTENSION_BYTES)),
    st.binary(min_size=32, max_size=32).map(lambda rest: MARKER + rest),
)
ENTRIES = st.lists(st.binary(min_size=GOSSIP_ENTRY_BYTES, max_size=GOSSIP_ENTRY_BYTES), max_size=3)
GOSSIP_KINDS = st.sampled_from([kinds.PING, kinds.PONG, kinds.MEET])


def is_well_formed(local: LocalNode) -> bool:
    """Whether the saved file and the replies can be parsed."""
    client = local.client()
    assert ask(client, "CLUSTER", "SAVECONFIG") == b"OK"
    assert decode(local.host.nodes_text).node_id == local.node.state.view.node_id
    shown = ask(client, "CLUSTER", "NODES").decode().splitlines()
    return all(len(line.split()) == 6 for line in shown) and ask(client, "HELLO")[0] == 1


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(IDS), EXTENSIONS, GOSSIP_KINDS, ENTRIES, st.binary(max_size=60)), max_size=6),
    st.integers(0, (1 << 64) - 1),
)
def test_node_survives_any_membership_frames(
    frames: list[tuple[bytes, bytes, int, list[bytes], bytes]], clock_ms: int
) -> None:
    local = LocalNode(config(cluster_node_timeout=1000))
    ScriptedNode(local, b"10.0.0.9", node_id=IDS[0]).join()
    for node_id, extra, kind, entries, payload in frames:
        scripted = ScriptedNode(local, b"10.0.0.9", node_id=node_id, extension=extra)
        scripted.send_gossip(kind, *entries, clock_ms=clock_ms)
        scripted.deliver(scripted.link, scripted.writer.other(kinds.HOST, payload))
        if scripted.dialed_link is not None:
            scripted.send_pong(*entries, clock_ms=clock_ms)
        local.run(milliseconds=300)
    local.run(seconds=3)
    assert is_well_formed(local)
    assert [text for _, text in local.host.log_lines if "BUG" in text] == []


@pytest.mark.parametrize("node_id", IDS[2:])
def test_node_with_an_invalid_id_is_refused(node_id: bytes) -> None:
    local = LocalNode()
    scripted = ScriptedNode(local, b"10.0.0.9", node_id=node_id)
    scripted.send_gossip(kinds.MEET)
    assert scripted.link.closed
    assert local.node.state.view.peers == {}
    assert ask(local.client(), "CLUSTER", "MEET", "10.0.0.9", 7711) == b"OK"
    local.run(milliseconds=100)
    scripted.send_pong()
    assert local.node.state.view.peers == {}
