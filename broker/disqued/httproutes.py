"""What can be asked on the HTTP port, as a table: a page is a row (`Route`), and a request for it an `Exchange`.

A handler answers at once or later, or goes on sending what there is to say (`Exchange.stream`). The one that does not
answer at once says how many may wait at a time (`Route.most`), so that nobody can occupy all connections with one page.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from disqued.node import Node

OK: Final = 200
BAD_REQUEST: Final = 400
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
METHOD_NOT_ALLOWED: Final = 405
LENGTH_REQUIRED: Final = 411
CONTENT_TOO_LARGE: Final = 413
BUG: Final = 500
UNAVAILABLE: Final = 503
READS: Final = ("GET", "HEAD")
TEXT: Final = "text/plain; charset=utf-8"
LONGEST_NAME: Final = 256
"""Bytes. Queues with longer names are on no page."""
LONGEST_PATTERN: Final = 128
"""Bytes. How long a pattern takes grows with its length and that of the names."""


@dataclass(frozen=True)
class Answer:
    """What a client gets to read."""

    status: int
    content: str | bytes
    """A text is sent with the end of its last line, bytes as they are."""
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = TEXT


@dataclass(frozen=True)
class Request:
    """What a client asked."""

    method: str = "GET"
    query: str = ""
    """What stands behind the question mark."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """By their names in lower case; of headers that came twice, the last."""
    body: bytes = b""
    client: str = ""
    """Its address, `ip:port` or `[ip]:port`."""


class Client(Protocol):
    """Whoever waits for an answer, as an exchange sees it."""

    def deliver(self, answer: Answer) -> None:
        """Send the answer, which ends the exchange."""

    def begin(self, answer: Answer) -> None:
        """Send the head of an answer whose content comes in parts, the first of them with it."""

    def push(self, data: bytes) -> None:
        """Send one more part."""

    def complete(self) -> None:
        """All parts were sent, which ends the exchange."""

    def fail(self, bug: Exception) -> None:
        """Say that there is a mistake of ours."""

    @property
    def reads(self) -> bool:
        """Whether it took all it was sent."""


class Exchange:
    """A request that is to be answered."""

    def __init__(self, loop: AbstractEventLoop, route: Route, request: Request) -> None:
        self.route = route
        self.request = request
        self.query = request.query
        """What stands behind the question mark."""
        self.client: Client | None = None
        """Who gets the answer; None when it was sent, or nobody wants it any more."""
        self._loop = loop
        self._timer: TimerHandle | None = None
        self._at_end: list[Callable[[], None]] = []

    def answer(self, status: int, text: str) -> None:
        """Say it, unless the client is gone."""
        self.send(Answer(status, text))

    def send(self, answer: Answer) -> None:
        """Answer with any content, unless the client is gone."""
        client = self.client
        self.end()
        if client is not None:
            client.deliver(answer)

    def stream(self, answer: Answer) -> None:
        """Begin an answer that goes on (`push`) for as long as the client wants to hear it."""
        if self.client is not None:
            self.client.begin(answer)

    def push(self, data: bytes) -> None:
        """Send the next part. To be left out while the client does not read (`reads`), so that nothing piles up."""
        if self.client is not None:
            self.client.push(data)

    def finish(self) -> None:
        """All parts were sent."""
        client = self.client
        self.end()
        if client is not None:
            client.complete()

    @property
    def reads(self) -> bool:
        """Whether the client is there and took all it was sent."""
        return self.client is not None and self.client.reads

    def run(self, step: Callable[[], None]) -> None:
        """Go on with the answer, unless the client is gone. Whatever goes wrong with it, the broker goes on."""
        client = self.client
        if client is None:
            return
        try:
            step()
        except Exception as bug:  # noqa: BLE001 - a mistake of ours must not end the node
            client.fail(bug)

    def again(self, delay_s: float, look: Callable[[], None]) -> None:
        """Have somebody look again before it is answered."""
        self._timer = self._loop.call_later(delay_s, self.run, look)

    def at_end(self, callback: Callable[[], None]) -> None:
        """Have something done when the exchange is over, also when the client went before."""
        self._at_end.append(callback)

    def now_s(self) -> float:
        """A clock that only measures spans."""
        return self._loop.time()

    def end(self) -> None:
        """Nobody is to be told anything more."""
        self.client = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        callbacks, self._at_end = self._at_end, []
        for callback in callbacks:
            callback()


Handler: TypeAlias = "Callable[[Node, Exchange], None]"


@dataclass(frozen=True)
class Route:
    """One page."""

    path: str
    handler: Handler
    most: int = 1
    """How many requests for it may wait for their answers at a time; those that are answered at once do not count."""
    methods: tuple[str, ...] = READS
    most_body_bytes: int = 0
    """Of the body of a request; 0 when it has none."""
    named: bool = True
    """Those who ask for a page that there is not are told of this one."""


def at(routes: tuple[Route, ...], path: str) -> Route | None:
    """The page at a path."""
    return next((route for route in routes if route.path == path), None)


def find(routes: tuple[Route, ...], method: str, path: str) -> Route | Answer:
    """The page that is asked for, or what to say instead."""
    route = at(routes, path)
    if route is None:
        pages = ", ".join(route.path for route in routes if route.named)
        return Answer(NOT_FOUND, f"There is no such page. There are: {pages}")
    if method in route.methods:
        return route
    text = "This page can only be read (GET)" if "GET" in route.methods else f"Ask with {route.methods[0]}"
    return Answer(METHOD_NOT_ALLOWED, text, (("Allow", ", ".join(route.methods)),))
