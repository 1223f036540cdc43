"""The difference between the two clients: opening connections, transferring bytes, waiting.

The session is written once, as coroutines that know no event loop. Over asyncio they suspend. Over blocking sockets
every await returns at once, and `run_now` runs such a coroutine to its end without an event loop.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from disqued.client.nodes import Address
from disqued.client.wire import Reply

T = TypeVar("T")


class Link(Protocol):
    """One open connection, used by one call at a time."""

    node_id: str
    """The ID of the node at the other end; empty until it is known."""

    @property
    def address(self) -> Address:
        """The node at the other end."""

    def is_usable(self) -> bool:
        """False when the node has closed the connection since the last call."""

    async def exchange(self, request: bytes, replies: int, read_timeout_s: float | None) -> list[Reply]:
        """Send `request`, read until as many replies have arrived, and return all that have.

        `read_timeout_s` limits each wait for more bytes.

        Raises:
            BrokenConnectionError: the connection broke, or timed out, before the last reply.
        """

    def close(self) -> None:
        """Close without waiting; has no effect on a closed connection."""


class Transport(Protocol):
    """The network and the clock of a client."""

    async def dial(self, address: Address, timeout_s: float | None) -> Link:
        """Open a connection. Raises OSError."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def acquire(self) -> None:
        """Wait until one more connection may be used."""

    def release(self) -> None:
        """End the use of a connection that `acquire` allowed."""


class BrokenConnectionError(ConnectionError):
    """The connection broke during an exchange; `replies` are those that arrived before, in order."""

    def __init__(self, reason: Exception | str, replies: list[Reply]) -> None:
        super().__init__(str(reason) or type(reason).__name__)
        self.replies = replies


def run_now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine over a blocking transport, which never suspends, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("a blocking transport must not suspend")
