"""Sends PING, PONG and MEET. Each carries gossip and the time of this node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.bus import kinds
from disqued.core.runtime import outbox
from disqued.membership.gossip import entries_for

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Link, Peer
    from disqued.core.runtime.state import NodeState


def greeting(state: NodeState, peer: Peer) -> bytes:
    """The first frame for a node: MEET if it may not know this node, otherwise PING, which expects an answer."""
    if peer.flags & kinds.NODE_MEET:
        return _frame(state, kinds.MEET, peer)
    if peer.ping_sent_ms == 0:
        peer.ping_sent_ms = state.now_ms
    return _frame(state, kinds.PING, peer)


def send_ping(state: NodeState, peer: Peer) -> None:
    """Ask a node whether it is alive. The time without an answer counts from the first unanswered PING."""
    if outbox.send(state, peer, _frame(state, kinds.PING, peer)) and peer.ping_sent_ms == 0:
        peer.ping_sent_ms = state.now_ms


def send_pong(state: NodeState, link: Link, peer: Peer | None) -> None:
    """Answer a PING or a MEET on the same connection."""
    state.ready.put(link, _frame(state, kinds.PONG, peer))


def _frame(state: NodeState, kind: int, peer: Peer | None) -> bytes:
    return state.bus.gossip(kind, entries_for(state, peer), int(state.now_ms))
