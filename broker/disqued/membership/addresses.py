"""Literal addresses, host names and ports, as users and other nodes write them."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final

from disqued.config.endpoint import HOST_NAME
from disqued.core.cluster.peer import BUS_PORT_DISTANCE

MAX_PORT: Final = 65535 - BUS_PORT_DISTANCE
"""The highest port for clients from which the port of the bus can follow."""


def literal(word: bytes) -> bytes:
    """A literal address in its usual form; empty if it is not one, or has a zone, which only one host understands."""
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
    """Whether a word has the form of a host name."""
    return HOST_NAME.fullmatch(word.decode("latin-1")) is not None


def bus_port_of(port: int, announced: int) -> int:
    """The port of a node's bus; 0 if there is none."""
    if announced:
        return announced
    return port + BUS_PORT_DISTANCE if 0 < port <= MAX_PORT else 0
