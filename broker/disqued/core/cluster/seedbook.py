"""What a node knows of its seeds: which addresses they had, and which of those it need not meet."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

REMEMBERED_MS: Final = 300_000
MOST: Final = 1000
"""Aliases remembered."""


class SeedBook:
    """Kept by the membership room."""

    def __init__(self) -> None:
        self.addresses: dict[bytes, list[bytes]] = {}
        """What each name stood for when it was looked up last."""
        self.looked_ms: i64 = 0
        """When the names were looked up last."""
        self.pause_ms: i64 = 0
        """Until they are again, while something is missing."""
        self._aliases: dict[tuple[bytes, int], tuple[bytes, int]] = {}

    def remember(self, ip: bytes, bus_port: i64, node_id: bytes, now_ms: i64) -> None:
        """A node answered at an address that is not the one it has here, or where another one should be."""
        if len(self._aliases) >= MOST:
            self._aliases.clear()
        self._aliases[ip, int(bus_port)] = (node_id, int(now_ms + REMEMBERED_MS))

    def who(self, ip: bytes, bus_port: i64, now_ms: i64) -> bytes:
        """The ID of the node that answered there a while ago; empty if none is remembered."""
        node_id, until_ms = self._aliases.get((ip, int(bus_port)), (b"", 0))
        return node_id if until_ms > now_ms else b""
