"""What the two faces of the client differ in: opening connections, moving bytes, waiting.

The session above is written once, as coroutines that know no event loop. Over asyncio they really suspend; over
blocking sockets every await returns at once, and `run_now` drives such a coroutine to its end without any loop.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from disqued.client.nodes import Address
from disqued.client.wire import Reply

T = TypeVar("T")


class Link(Protocol):
    """One open connection, used by one call at a time."""

    @property
    def address(self) -> Address:
        """The node at the other end."""

    def is_usable(self) -> bool:
        """False when the other side has closed it while nobody waited for an answer."""

    async def exchange(self, request: bytes, replies: int, silence_s: float | None) -> list[Reply]:
        """Send `request` and collect as many replies; `silence_s` bounds every wait for more bytes.

        Raises:
            BrokenOffError: the connection broke, or stayed silent, before the last reply.
        """

    def close(self) -> None:
        """Close without waiting; harmless when closed already."""


class Transport(Protocol):
    """How a face reaches the network and the clock."""

    async def dial(self, address: Address, timeout_s: float | None) -> Link:
        """Open a connection. Raises OSError."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def acquire(self) -> None:
        """Wait until one more connection may be used."""

    def release(self) -> None:
        """Give the permission of `acquire` back."""


class BrokenOffError(ConnectionError):
    """The connection broke in the middle; `replies` are those that arrived before, in order."""

    def __init__(self, reason: Exception | str, replies: list[Reply]) -> None:
        super().__init__(str(reason) or type(reason).__name__)
        self.replies = replies


def run_now(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine over a blocking transport, which never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("a blocking transport must not suspend")
