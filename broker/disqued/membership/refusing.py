"""Refuses the node at the other end of a connection, and logs what such nodes did, at a bounded rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.membership import nodes
from disqued.membership.kept import membership_of

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Link
    from disqued.core.runtime.state import NodeState


def refuse(state: NodeState, link: Link, frame: Frame, reason: str) -> None:
    """Close a connection, and log why."""
    peer = link.peer
    link.refused = True
    if peer is None:
        state.ready.hang_up_link(link)
    elif peer.in_handshake:
        nodes.remove(state, peer)
    elif link is peer.link and (peer.id == frame.sender or (state.secrets and not link.proven)):
        nodes.drop_link(state, peer)
    else:
        nodes.lose_address(state, peer)
    log(state, link, frame, f"is refused: {reason}")


def log(state: NodeState, link: Link, frame: Frame, event: str) -> None:
    """Log what the sender of a frame did."""
    who = f"Node {frame.sender.decode()}" if nodes.is_node_id(frame.sender) else "A node"
    log_node(state, who, link.remote_ip.decode("ascii", "replace"), event)


def log_node(state: NodeState, who: str, address: str, event: str) -> None:
    """Log what a node did, once per address and event in a minute."""
    if membership_of(state).refusal_log.allows((address, event), int(state.now_ms)):
        state.host.log("warning", f"{who} at {address} {event}")
