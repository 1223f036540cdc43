"""Where another node is, as users write it: `host`, `host:port` or `host:port@bus-port`.

The host is a name or an address; an IPv6 address that a port follows stands in brackets.
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
    """One place; ports are 0 where they were not given."""

    host: str
    port: int = 0
    bus_port: int = 0


def parse_endpoint(text: str) -> Endpoint | None:
    """The place that the text stands for, None for none."""
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
    """Whether it is a literal address, without the zone that only one machine understands."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text
