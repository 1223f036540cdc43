"""The address of another node as users write it: `host`, `host:port` or `host:port@bus-port`.

The host is a name or an IP address. An IPv6 address with a port must be in brackets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

HOST_NAME: Final = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?")

_ENDPOINT: Final = re.compile(
    r"(?:\[(?P<bracketed>[^\]]+)\]|(?P<plain>[^:@\[\]]+))(?::(?P<port>[0-9]{1,5})(?:@(?P<bus_port>[0-9]{1,5}))?)?"
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Host and ports of a node. A port that was not given is 0."""

    host: str
    port: int = 0
    bus_port: int = 0


def parse_endpoint(text: str) -> Endpoint | None:
    """Parse an endpoint; None if the text is not valid."""
    if is_address(text):
        return Endpoint(text)
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        return None
    host = match["bracketed"] or match["plain"]
    ports = [int(match[name]) if match[name] else 0 for name in ("port", "bus_port")]
    given = [match[name] is not None for name in ("port", "bus_port")]
    if any(port > 65535 or (here and not port) for port, here in zip(ports, given, strict=True)):
        return None
    if not (is_address(host) or (match["plain"] and HOST_NAME.fullmatch(host))):
        return None
    return Endpoint(host, *ports)


def is_address(text: str) -> bool:
    """Whether the text is an IP address without a zone, which is valid on one machine only."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text
