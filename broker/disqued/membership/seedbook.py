"""The seeds of a node: their addresses, and which nodes answered at other addresses than the known ones."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

REMEMBERED_MS: Final = 300_000
MOST: Final = 1000
"""The number of aliases that are remembered."""


class SeedBook:
    """The seeds of one node."""

    def __init__(self) -> None:
        self.addresses: dict[bytes, list[bytes]] = {}
        """The addresses of each name at the last look-up."""
        self.looked_ms: i64 = 0
        """When the names were looked up last."""
        self.pause_ms: i64 = 0
        """The time until they are looked up again while a seed is missing."""
        self._aliases: dict[tuple[bytes, int], tuple[bytes, int]] = {}

    def remember(self, ip: bytes, bus_port: i64, node_id: bytes, now_ms: i64) -> None:
        """Remember that a node answered at an address that is not the one known for it."""
        if len(self._aliases) >= MOST:
            self._aliases.clear()
        self._aliases[ip, int(bus_port)] = (node_id, int(now_ms + REMEMBERED_MS))

    def who(self, ip: bytes, bus_port: i64, now_ms: i64) -> bytes:
        """The ID of the node that answered at this address lately; empty if none is remembered."""
        node_id, until_ms = self._aliases.get((ip, int(bus_port)), (b"", 0))
        return node_id if until_ms > now_ms else b""
