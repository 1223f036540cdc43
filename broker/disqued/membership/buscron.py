"""The bus cron, ten times per second: connects to the other nodes, pings them, and detects those that do not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.membership import announcements, authentication, failure, forget, handshake, nodes, seeds, tokenbits
from disqued.membership.dialing import dial
from disqued.membership.ping import send_ping
from disqued.membership.saving import save_changes

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState
    from disqued.membership.kept import Membership

_PING_ROUNDS: Final = 10
"""Every tenth round pings one node at random."""
_CANDIDATES: Final = 5
_SLEPT_MS: Final = 500
"""If a round is later than this, this node was paused: silence of the others means nothing."""
_CONNECT_MS: Final = 3000
"""A connection without an answer is abandoned after this time if the node can be tried at another address."""


def run(own: Membership) -> None:
    """One round: do what is due with each node."""
    state = own.state
    view = state.view
    _extend_deadlines_after_pause(own)
    own.rounds += 1
    for peer in list(view.peers.values()):
        if handshake.expired(state, peer):
            authentication.log_silence(state, peer)
            nodes.remove(state, peer)
        elif peer.link is None and peer.has_address and state.now_ms >= peer.next_dial_ms:
            dial(state, peer)
    if own.rounds % _PING_ROUNDS == 0:
        _ping_any(state)
        own.quarantine.judge()
        forget.expire(own)
        seeds.look(state)
    for peer in view.peers.values():
        if peer.has_address and not peer.in_handshake:
            _watch(state, peer)
    if own.announcement_changed:
        own.announcement_changed = False
        for peer in view.peers.values():
            send_ping(state, peer)
    tokenbits.settle(own)
    announcements.announce(own)
    save_changes(own)
    tokenbits.saved(own)


def _extend_deadlines_after_pause(own: Membership) -> None:
    """After a pause of this node, give the others as much time to answer as if there had been no pause."""
    state = own.state
    view = state.view
    pause_ms = int(state.now_ms) - own.round_ms
    if own.round_ms and pause_ms > 1000 // state.config.hz + _SLEPT_MS:
        for peer in view.peers.values():
            if peer.ping_sent_ms:
                peer.ping_sent_ms = state.now_ms
            if peer.pong_received_ms:
                peer.pong_received_ms += pause_ms
            if peer.in_handshake:
                peer.created_ms += pause_ms
    own.round_ms = int(state.now_ms)


def _ping_any(state: NodeState) -> None:
    """Choose a few nodes at random, and ping the one that has been silent for longest."""
    peers = list(state.view.peers.values())
    oldest: Peer | None = None
    for _ in range(_CANDIDATES if peers else 0):
        peer = peers[int(state.host.random() * len(peers))]
        if peer.link is None or peer.ping_sent_ms or peer.in_handshake:
            continue
        if oldest is None or peer.pong_received_ms < oldest.pong_received_ms:
            oldest = peer
    if oldest is not None:
        send_ping(state, oldest)


def _watch(state: NodeState, peer: Peer) -> None:
    """Ping a node that was silent for long. If it does not answer, try a new connection, then suspect the node."""
    now_ms = state.now_ms
    timeout_ms = state.config.cluster_node_timeout
    link = peer.link
    asked_ms = peer.ping_sent_ms
    if link is not None:
        unanswered_ms = now_ms - asked_ms if asked_ms else 0
        if peer.host and peer.ip and not link.answered and now_ms - link.created_ms > _CONNECT_MS:
            nodes.drop_link(state, peer)
        elif now_ms - link.created_ms > timeout_ms and unanswered_ms > timeout_ms // 2:
            nodes.drop_link(state, peer)
            nodes.dial_soon(peer)
        elif not asked_ms and now_ms - peer.pong_received_ms > timeout_ms // 2:
            send_ping(state, peer)
            return
    if asked_ms and now_ms - asked_ms > timeout_ms and not peer.failing:
        failure.suspect(state, peer)
