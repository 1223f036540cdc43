"""Where nodes are: literal addresses, names and ports as they come from users and from other nodes."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final

from disqued.config.endpoint import HOST_NAME
from disqued.core.cluster.peer import BUS_PORT_DISTANCE

MAX_PORT: Final = 65535 - BUS_PORT_DISTANCE
"""Of ports for clients, where the port of the bus follows from it."""


def literal(word: bytes) -> bytes:
    """A literal address in its usual form, without the zone that only one machine understands; empty if it is none."""
    try:
        address = ip_address(word.decode("ascii"))
    except ValueError:
        return b""
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return b""
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped).encode()
    return str(address).encode()


def is_name(word: bytes) -> bool:
    """Whether it looks like the name of a host."""
    return HOST_NAME.fullmatch(word.decode("latin-1")) is not None


def bus_port_of(port: int, announced: int) -> int:
    """The port of a node's bus; 0 when there can be none."""
    if announced:
        return announced
    return port + BUS_PORT_DISTANCE if 0 < port <= MAX_PORT else 0
