"""Gossip: what nodes report to each other about other nodes.

Gossip alone changes no flag and no address: a report that a node fails is one vote, and an unknown address starts a
handshake. Entries about failing nodes come first, so that votes reach a majority soon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.bus.gossip import GossipEntry, gossip_of
from disqued.core.cluster.peer import BUS_PORT_DISTANCE
from disqued.membership import failure, forget, handshake, nodes
from disqued.membership.addresses import bus_port_of, literal
from disqued.membership.kept import membership_of

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

_FEWEST: Final = 3
_SHARE: Final = 10
"""One frame reports on a tenth of the nodes, at least on 3."""
_FAILING: Final = kinds.NODE_PFAIL | kinds.NODE_FAIL


def entries_for(state: NodeState, receiver: Peer | None) -> list[bytes]:
    """The entries of one frame, which only members get: failing nodes first, then nodes with a connection."""
    if receiver is None or receiver.in_handshake:
        return []
    peers = state.view.peers
    count = len(peers) + 1
    wanted = min(max(_FEWEST, count // _SHARE), count - 2)
    if wanted <= 0:
        return []
    told = [peer for peer in peers.values() if peer is not receiver and not peer.in_handshake and peer.ip]
    failing = [peer for peer in told if peer.failing]
    healthy = [peer for peer in told if not peer.failing and peer.link is not None]
    chosen = _pick(state, failing, wanted)
    chosen += _pick(state, healthy, wanted - len(chosen))
    return [_entry(peer) for peer in chosen]


def _pick(state: NodeState, peers: list[Peer], count: int) -> list[Peer]:
    """Up to `count` of the nodes, chosen at random."""
    chosen = []
    for _ in range(min(count, len(peers))):
        at = int(state.host.random() * len(peers))
        peers[at], peers[-1] = peers[-1], peers[at]
        chosen.append(peers.pop())
    return chosen


def _entry(peer: Peer) -> bytes:
    bus_port = 0 if peer.bus_port == peer.port + BUS_PORT_DISTANCE else peer.bus_port
    return GossipEntry(
        peer.id, peer.ping_sent_ms, peer.pong_received_ms, peer.ip, peer.port, peer.flags, bus_port
    ).encode()


def handle_entries(state: NodeState, reporter: Peer, frame: Frame) -> None:
    """Take in what a member reports about other nodes."""
    view = state.view
    for entry in gossip_of(frame):
        if entry.node_id == view.node_id or not nodes.is_node_id(entry.node_id):
            continue
        ip = literal(entry.ip)
        port = int(entry.port)
        bus_port = bus_port_of(port, int(entry.bus_port))
        subject = view.peers.get(entry.node_id)
        if subject is None:
            if entry.flags & kinds.NODE_NOADDR == 0 and not forget.is_forgotten(state, entry.node_id):
                handshake.begin(state, ip, port, bus_port)
            continue
        if subject is reporter or subject.in_handshake:
            continue
        failure.handle_report(state, subject, reporter, failing=entry.flags & _FAILING != 0)
        lost = subject.failing or subject.flags & kinds.NODE_NOADDR
        if (
            lost
            and entry.flags & kinds.NODE_NOADDR == 0
            and (ip, port, bus_port) != (subject.ip, subject.port, subject.bus_port)
            and membership_of(state).seeds.who(ip, bus_port, state.now_ms) in (b"", subject.id)
        ):
            # Not an address at which another node was found: outdated gossip must not bring back a node that was reset.
            handshake.begin(state, ip, port, bus_port)
