"""What can be asked on the HTTP port, as a table: a page is a row (`Route`), and a request for it an `Exchange`.

A handler answers at once or later. The one that answers later says how many may wait at a time (`Route.most`), so that
nobody can occupy all connections with one page.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from disqued.node import Node

OK: Final = 200
BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404
METHOD_NOT_ALLOWED: Final = 405
CONTENT_TOO_LARGE: Final = 413
BUG: Final = 500
UNAVAILABLE: Final = 503
METHODS: Final = ("GET", "HEAD")


@dataclass(frozen=True)
class Answer:
    """What a client gets to read."""

    status: int
    text: str
    """Without the end of its last line."""
    headers: tuple[tuple[str, str], ...] = ()


class Exchange:
    """A request that is to be answered."""

    def __init__(self, loop: AbstractEventLoop, route: Route, query: str) -> None:
        self.route = route
        self.query = query
        """What stands behind the question mark."""
        self.deliver: Callable[[Answer], None] | None = None
        """Sends the answer; None when it was sent, or nobody wants it any more."""
        self._loop = loop
        self._timer: TimerHandle | None = None

    def answer(self, status: int, text: str) -> None:
        """Say it, unless the client is gone."""
        deliver = self.deliver
        self.end()
        if deliver is not None:
            deliver(Answer(status, text))

    def again(self, delay_s: float, look: Callable[[], None]) -> None:
        """Have somebody look again before it is answered."""
        self._timer = self._loop.call_later(delay_s, look)

    def now_s(self) -> float:
        """A clock that only measures spans."""
        return self._loop.time()

    def end(self) -> None:
        """Nobody is to be told anything more."""
        self.deliver = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


Handler: TypeAlias = "Callable[[Node, Exchange], None]"


@dataclass(frozen=True)
class Route:
    """One page."""

    path: str
    handler: Handler
    most: int = 1
    """How many requests for it may wait for their answers at a time; those that are answered at once do not count."""


def find(routes: tuple[Route, ...], method: str, path: str) -> Route | Answer:
    """The page that is asked for, or what to say instead."""
    found = [route for route in routes if route.path == path]
    if not found:
        pages = ", ".join(route.path for route in routes)
        return Answer(NOT_FOUND, f"There is no such page. There are: {pages}")
    if method not in METHODS:
        return Answer(METHOD_NOT_ALLOWED, "This page can only be read (GET)", (("Allow", ", ".join(METHODS)),))
    return found[0]
