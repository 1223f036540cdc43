"""The list of nodes: adds, moves and removes them, and keeps the cluster view up to date."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.cluster.peer import BUS_PORT_DISTANCE, Peer
from disqued.membership.kept import membership_of

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

NODE_ID_BYTES: Final = 40
_NODE_ID: Final = re.compile(rb"[0-9a-f]{40}")


def is_node_id(word: bytes) -> bool:
    """Whether a word can be the ID of a node."""
    return _NODE_ID.fullmatch(word) is not None


def random_id(state: NodeState) -> bytes:
    """A new random node ID."""
    return state.host.random_bytes(NODE_ID_BYTES // 2).hex().encode()


def add(state: NodeState, peer: Peer) -> None:
    """Add a node."""
    state.view.peers[peer.id] = peer
    state.view.refresh()


def identify(state: NodeState, peer: Peer, node_id: bytes) -> None:
    """Make a node in handshake a member, under its own ID."""
    view = state.view
    del view.peers[peer.id]
    peer.id = node_id
    peer.flags &= ~(kinds.NODE_HANDSHAKE | kinds.NODE_MEET)
    view.peers[node_id] = peer
    changed(state)


def remove(state: NodeState, peer: Peer) -> None:
    """Remove a node, and its votes about other nodes."""
    drop_link(state, peer)
    view = state.view
    del view.peers[peer.id]
    view.refresh()
    if peer.in_handshake:
        return
    for other in view.peers.values():
        other.reports.pop(peer.id, None)
    membership_of(state).unsaved = True
    state.events.peer_forgotten(peer)


def drop_link(state: NodeState, peer: Peer) -> None:
    """Close the connection to a node; the next round of the bus cron opens a new one."""
    link = peer.link
    if link is not None:
        peer.link = None
        state.ready.hang_up_link(link)


def move(state: NodeState, peer: Peer, ip: bytes, port: int, bus_port: int) -> None:
    """A node has another address: connect there before its host name is tried."""
    peer.ip = ip
    peer.port = port
    peer.bus_port = bus_port
    peer.flags &= ~kinds.NODE_NOADDR
    drop_link(state, peer)
    peer.dials = 1
    peer.next_dial_ms = 0
    changed(state)


def lose_address(state: NodeState, peer: Peer) -> None:
    """Another node answers at the address of a node: wait until that node connects, or resolve its host name."""
    peer.flags |= kinds.NODE_NOADDR
    peer.ip = b""
    if not peer.host:
        peer.port = 0
        peer.bus_port = BUS_PORT_DISTANCE
    drop_link(state, peer)
    changed(state)


def dial_soon(peer: Peer) -> None:
    """Connect in the next round of the bus cron, without the delay after earlier attempts."""
    peer.dials = 0
    peer.next_dial_ms = 0


def changed(state: NodeState) -> None:
    """Flags or addresses of members changed: update the view, and save the file soon."""
    state.view.refresh()
    membership_of(state).unsaved = True


def learn_own_ip(state: NodeState, ip: bytes) -> None:
    """Another node reached this one at an address: it is the address of this node unless one is configured."""
    own = membership_of(state)
    if not ip or own.announced_ip:
        return
    own.ip_is_old = False
    if ip != state.view.ip:
        state.view.ip = ip
        own.unsaved = True
