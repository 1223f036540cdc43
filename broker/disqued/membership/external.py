"""EXTERNAL: a node announces the address at which clients outside of its network reach it.

HELLO shows these addresses to clients of `external-port` and `external-tls-port`, and the usual ones to all others.
`announcements` sends them, as `host:port` or `host:port@tls-port`. An address is forgotten when its node starts again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.config import parse_endpoint

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

FEATURE_EXTERNAL: Final = 64
"""Understands EXTERNAL."""
LONGEST: Final = 300
"""The maximum length of an address."""


def handle_external(_state: NodeState, sender: Peer, frame: Frame) -> None:
    """Take in a node's external address. Anything that is not an address with a port is ignored."""
    address = frame.payload
    if not address or address_of(address) is not None:
        sender.external = address


def address_of(external: bytes) -> tuple[bytes, int, int] | None:
    """The host, the port and the port for TLS in an announced address, which may be 0; None if it is none."""
    found = parse_endpoint(external.decode("latin-1")) if len(external) <= LONGEST else None
    return (found.host.encode(), found.port, found.bus_port) if found is not None and found.port else None
