"""What the shell of a node needs of the sockets of the cluster bus: a protocol that only type checkers read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Link


class Network(Protocol):
    """Opens links and resolves names without blocking the node; `server.bus` implements it."""

    def dial(self, link: Link) -> None:
        """Open a connection to the peer of a link."""

    def look_up(self, name: bytes) -> None:
        """Resolve a host name."""
