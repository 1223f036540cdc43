"""PING, PONG and MEET as they are heard: who is there, since when, where, and what it says of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.bus import kinds
from disqued.membership import failure, gossip, handshake, nodes
from disqued.membership.addresses import literal
from disqued.membership.ping import send_pong

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.link import Link
    from disqued.core.peer import Peer
    from disqued.core.state import NodeState


def hear_ping(state: NodeState, link: Link, sender: Peer | None, frame: Frame) -> None:
    """PING or MEET: answer, then take note. Only MEET makes a stranger a member."""
    view = state.view
    if frame.kind == kinds.MEET or not view.ip:
        nodes.learn_own_ip(state, literal(link.local_ip))
    if frame.kind == kinds.MEET and sender is None and frame.sender != view.node_id:
        handshake.hear_meet(state, link, frame)
    send_pong(state, link, sender)
    if sender is not None and not sender.in_handshake and link is not sender.link:
        _find(state, sender, link, frame)
    _note(state, link, sender, frame)


def hear_pong(state: NodeState, link: Link, sender: Peer | None, frame: Frame) -> None:
    """PONG: the node at the other end of a link of ours answers."""
    peer = link.peer
    if peer is None:
        _note(state, link, sender, frame)
        return
    if peer.in_handshake:
        handshake.complete(state, peer, sender, link, frame)
        return
    if peer.id != frame.sender:
        nodes.lose_address(state, peer)
        return
    link.answered = True
    nodes.dial_soon(peer)
    peer.pong_received_ms = state.now_ms
    peer.ping_sent_ms = 0
    failure.clear(state, peer)
    _note(state, link, sender, frame)


def _find(state: NodeState, sender: Peer, link: Link, frame: Frame) -> None:
    """A member speaks up on a connection of its own: that is where it is."""
    ip, port, bus_port = handshake.where(link, frame)
    if not ip or not port or not bus_port:
        return
    if (ip, port, bus_port) != (sender.ip, sender.port, sender.bus_port):
        nodes.move(state, sender, ip, port, bus_port)
    elif sender.link is None:
        nodes.dial_soon(sender)


def _note(state: NodeState, link: Link, sender: Peer | None, frame: Frame) -> None:
    """What every frame of a member brings: what it is, whether it leaves, and gossip."""
    if sender is None or sender.in_handshake or link.closed:
        return
    sender.features = frame.features
    sender.incarnation = frame.incarnation
    leaving = frame.node_flags & kinds.NODE_LEAVING
    if leaving != sender.flags & kinds.NODE_LEAVING:
        sender.flags ^= kinds.NODE_LEAVING
        nodes.changed(state)
    gossip.hear(state, sender, frame)
