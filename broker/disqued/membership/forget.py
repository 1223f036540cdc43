"""CLUSTER FORGET: removes a node, and keeps gossip of other nodes from bringing it back for a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.membership import nodes
from disqued.membership.kept import membership_of

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState
    from disqued.membership.kept import Membership

BLACKLIST_MS: Final = 60_000


def forget(state: NodeState, peer: Peer) -> None:
    """Remove a node. For a minute, only CLUSTER MEET or the node's own MEET adds it again."""
    if not peer.in_handshake:
        membership_of(state).forgotten[peer.id] = int(state.now_ms) + BLACKLIST_MS
    nodes.remove(state, peer)


def is_forgotten(state: NodeState, node_id: bytes) -> bool:
    """Whether gossip must not bring back a node."""
    return membership_of(state).forgotten.get(node_id, 0) > state.now_ms


def expire(own: Membership) -> None:
    """Let gossip bring back nodes that were forgotten long enough ago."""
    if own.forgotten:
        now_ms = own.state.now_ms
        own.forgotten = {node_id: until_ms for node_id, until_ms in own.forgotten.items() if until_ms > now_ms}
