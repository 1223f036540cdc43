"""Handlers of PING, PONG and MEET: whether a node is alive, where it is, and what it reports about others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.bus import kinds
from disqued.bus.extension import NOBODY
from disqued.membership import announcements, failure, gossip, handshake, nodes, skew, zone
from disqued.membership.addresses import literal
from disqued.membership.authentication import accept_unproven
from disqued.membership.dialing import call_back
from disqued.membership.identity import admits
from disqued.membership.kept import membership_of
from disqued.membership.ping import send_pong

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Link, Peer
    from disqued.core.runtime.state import NodeState


def handle_ping(state: NodeState, link: Link, sender: Peer | None, frame: Frame) -> None:
    """Answer a PING or a MEET, then take in what it says. Only MEET makes an unknown node a member."""
    if not admits(state, link, sender, frame):
        return
    if link.peer is None and not link.sender:
        link.bind(frame.sender)
    view = state.view
    if frame.kind == kinds.MEET or not view.ip or membership_of(state).ip_is_old:
        nodes.learn_own_ip(state, literal(link.local_ip))
    if frame.kind == kinds.MEET and sender is None and frame.sender != view.node_id:
        handshake.handle_meet(state, link, frame)
    send_pong(state, link, sender)
    if sender is not None and not sender.in_handshake and link is not sender.link:
        if not link.answered:
            link.answered = True
            state.events.peer_connected(sender)
        _learn_address(state, sender, link, frame)
        announcements.repeat(sender)
    _take_in(state, link, sender, frame)


def handle_pong(state: NodeState, link: Link, sender: Peer | None, frame: Frame) -> None:
    """Handle a PONG: the node at the other end of a link answers."""
    if not admits(state, link, sender, frame):
        return
    peer = link.peer
    if link.holding:
        accept_unproven(state, link, frame)
    if peer is None:
        _take_in(state, link, link.member, frame)
        return
    if peer.in_handshake:
        handshake.complete(state, peer, sender, link, frame)
        if peer.link is link:
            _learn(state, peer, frame)
            state.events.peer_up(peer)
        return
    if peer.id != frame.sender:
        membership_of(state).seeds.remember(peer.ip, peer.bus_port, frame.sender, state.now_ms)
        nodes.lose_address(state, peer)
        return
    is_back = not link.answered or peer.failing
    link.answered = True
    nodes.dial_soon(peer)
    skew.measure(state, peer, int(peer.ping_sent_ms), frame)
    peer.pong_received_ms = state.now_ms
    peer.ping_sent_ms = 0
    failure.clear(state, peer)
    _resolve_address(state, peer, link, frame)
    _take_in(state, link, sender, frame)
    if is_back:
        state.events.peer_up(peer)


def _learn_address(state: NodeState, sender: Peer, link: Link, frame: Frame) -> None:
    """A member sent a frame on a connection that it opened: learn its address from that.

    If it has a host name, the address behind that name is kept while the connection to it works.
    """
    ip, port, bus_port = handshake.where(link, frame)
    if not ip or not port or not bus_port:
        return
    if sender.host and sender.connected and sender.incarnation == frame.incarnation:
        ip = sender.ip
    if (ip, bus_port) != (sender.ip, sender.bus_port):
        nodes.move(state, sender, ip, port, bus_port)
    elif port != sender.port:
        sender.port = port
        nodes.changed(state)
    call_back(state, sender)


def _resolve_address(state: NodeState, peer: Peer, link: Link, frame: Frame) -> None:
    """A member that was reached by its host name answers: its address is known now."""
    ip = handshake.where(link, frame)[0]
    if peer.host and ip and (ip != peer.ip or peer.flags & kinds.NODE_NOADDR):
        peer.ip = ip
        peer.flags &= ~kinds.NODE_NOADDR
        nodes.changed(state)


def _take_in(state: NodeState, link: Link, sender: Peer | None, frame: Frame) -> None:
    """Take in what a member says of itself, and its gossip."""
    if sender is None or sender.in_handshake or link.closed:
        return
    _learn(state, sender, frame)
    gossip.handle_entries(state, sender, frame)


def _learn(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Take in what a member says of itself: its features, its run, and whether it is leaving."""
    peer.features = frame.features
    if frame.incarnation != peer.incarnation:
        known = peer.incarnation != NOBODY
        peer.incarnation = frame.incarnation
        zone.learn(state, peer, b"")
        peer.external = b""
        peer.data_known = False
        if known:
            state.lifecycle.table.begin_era(peer.id)
            state.events.peer_restarted(peer)
    if frame.tls_port != peer.tls_port:
        peer.tls_port = frame.tls_port
        nodes.changed(state)
    leaving = frame.node_flags & kinds.NODE_LEAVING
    if leaving != peer.flags & kinds.NODE_LEAVING:
        peer.flags ^= kinds.NODE_LEAVING
        nodes.changed(state)
