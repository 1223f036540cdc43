"""Handshake: how a node at an address becomes a member. Until its ID is known it is listed under a random one.

The number of handshakes and their duration are limited, so that invented addresses cannot fill the list of nodes. When
there are too many, the oldest one gives way, and never one of CLUSTER MEET to one that an unknown node asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.membership import forget, nodes
from disqued.membership.addresses import bus_port_of, literal
from disqued.membership.kept import membership_of

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Link
    from disqued.core.runtime.state import NodeState

MOST: Final = 64
"""The number of handshakes at a time."""
SHORTEST_MS: Final = 1000
"""The minimum time that a handshake may take."""


def begin(state: NodeState, ip: bytes, port: int, bus_port: int, *, meet: bool = True, asked: bool = False) -> bool:
    """Start a handshake with the node at a literal address, unless one is running; False if that is impossible now.

    `meet`: ask the node to add this one too. `asked`: add the node even if it was forgotten recently.
    """
    if not ip or not 0 < port <= 65535 or not 0 < bus_port <= 65535:
        return False
    running = [peer for peer in state.view.peers.values() if peer.in_handshake]
    for peer in running:
        if (peer.ip, peer.bus_port) == (ip, bus_port):
            peer.asked = peer.asked or asked
            return True
    flags = kinds.NODE_HANDSHAKE | (kinds.NODE_MEET if meet else 0)
    peer = Peer(nodes.random_id(state), ip, port, flags, state.now_ms, bus_port)
    peer.asked = asked
    if len(running) >= MOST:
        oldest = min(running, key=_rank)  # the first one of those with the lowest rank
        if _rank(oldest) > _rank(peer):
            return False
        nodes.remove(state, oldest)
    nodes.add(state, peer)
    return True


def _rank(peer: Peer) -> int:
    """Which handshakes give way when there are too many: first those that unknown nodes asked for, then gossip."""
    if not peer.flags & kinds.NODE_MEET:
        return 0
    return 2 if peer.asked else 1


def expired(state: NodeState, peer: Peer) -> bool:
    """Whether a handshake took too long."""
    longest_ms = max(state.config.cluster_node_timeout, SHORTEST_MS)
    return peer.in_handshake and state.now_ms - peer.created_ms > longest_ms


def where(link: Link, frame: Frame) -> tuple[bytes, int, int]:
    """Address, port and bus port of the sender: as announced, otherwise the address that its connection comes from."""
    port = int(frame.port)
    return literal(frame.announced_ip) or literal(link.remote_ip), port, bus_port_of(port, int(frame.bus_port))


def handle_meet(state: NodeState, link: Link, frame: Frame) -> None:
    """A node that is not a member wants to join: start a handshake with it."""
    begin(state, *where(link, frame), meet=False, asked=True)


def complete(state: NodeState, peer: Peer, sender: Peer | None, link: Link, frame: Frame) -> None:
    """The node of a handshake told its ID: it is a new member, or one that is known already."""
    if frame.sender == state.view.node_id or sender is not None:
        membership_of(state).seeds.remember(peer.ip, peer.bus_port, frame.sender, state.now_ms)
    if frame.sender == state.view.node_id:
        nodes.remove(state, peer)
    elif sender is not None:
        if not sender.connected:
            take_over(state, sender, peer)
        nodes.remove(state, peer)
    elif forget.is_forgotten(state, frame.sender) and not peer.asked:
        nodes.remove(state, peer)
    else:
        nodes.identify(state, peer, frame.sender)
        _, port, bus_port = where(link, frame)
        if port and bus_port:
            peer.port, peer.bus_port = port, bus_port
        link.answered = True
        peer.pong_received_ms = state.now_ms
        peer.ping_sent_ms = 0
        nodes.dial_soon(peer)


def take_over(state: NodeState, member: Peer, found: Peer) -> None:
    """A member without a connection was found at an address: connect there from now on."""
    if (member.ip, member.port, member.bus_port) != (found.ip, found.port, found.bus_port):
        nodes.move(state, member, found.ip, int(found.port), int(found.bus_port))
