"""EXTERNAL: a node announces the address at which clients outside of its network reach it.

HELLO shows these addresses to clients of `external-port` and `external-tls-port`, and the usual ones to all others. The
message is sent like ZONE. The payload is `host:port`, or `host:port@tls-port`; empty for none. A node that never had
such an address sends nothing, and an address is forgotten when its node starts again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.config import parse_endpoint
from disqued.core.runtime import outbox

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState
    from disqued.membership.kept import Membership

FEATURE_EXTERNAL: Final = 64
"""Understands EXTERNAL."""
LONGEST: Final = 300
"""The maximum length of an address."""


def announce(own: Membership) -> None:
    """Send the external address to the nodes that do not know it yet."""
    if not own.had_external:
        return
    state = own.state
    address = state.view.external
    for peer in state.view.peers.values():
        link = peer.link
        if link is None or not link.answered or not peer.features & FEATURE_EXTERNAL:
            continue
        if link.told_external != address and outbox.send(state, peer, state.bus.other(kinds.EXTERNAL, address)):
            link.told_external = address


def repeat(peer: Peer) -> None:
    """Send the address again to a node that may have ignored it."""
    if peer.link is not None and peer.link.told_external:
        peer.link.told_external = None


def handle_external(_state: NodeState, sender: Peer, frame: Frame) -> None:
    """Take in a node's external address. Anything that is not an address with a port is ignored."""
    address = frame.payload
    if not address or address_of(address) is not None:
        sender.external = address


def address_of(external: bytes) -> tuple[bytes, int, int] | None:
    """The host, the port and the port for TLS in an announced address, which may be 0; None if it is none."""
    found = parse_endpoint(external.decode("latin-1")) if len(external) <= LONGEST else None
    return (found.host.encode(), found.port, found.bus_port) if found is not None and found.port else None
