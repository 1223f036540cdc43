"""FORGET: a node is no member any more, and gossip of those who still know it does not bring it back for a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.membership import nodes

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

BLACKLIST_MS: Final = 60_000


def forget(state: NodeState, peer: Peer) -> None:
    """Take a node out for a minute at least, unless somebody asks for it (MEET)."""
    if not peer.in_handshake:
        state.view.forgotten[peer.id] = int(state.now_ms) + BLACKLIST_MS
    nodes.remove(state, peer)


def is_forgotten(state: NodeState, node_id: bytes) -> bool:
    """Whether gossip may not bring back a node."""
    return state.view.forgotten.get(node_id, 0) > state.now_ms


def expire(state: NodeState) -> None:
    """Drop what is over."""
    view = state.view
    if view.forgotten:
        now_ms = state.now_ms
        view.forgotten = {node_id: until_ms for node_id, until_ms in view.forgotten.items() if until_ms > now_ms}
