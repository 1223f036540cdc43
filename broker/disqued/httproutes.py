"""The routes of the HTTP port: a page is a `Route`, a request for it an `Exchange`.

A handler replies at once or later, or streams its reply in parts (`Exchange.stream`). `Route.max_pending` limits the
number of pending requests for a page, so one page cannot occupy all connections.
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
TOO_MANY_REQUESTS: Final = 429
INTERNAL_ERROR: Final = 500
UNAVAILABLE: Final = 503
READS: Final = ("GET", "HEAD")
TEXT: Final = "text/plain; charset=utf-8"
MAX_NAME_BYTES: Final = 256
"""Queues with longer names are not shown on any page."""
MAX_PATTERN_BYTES: Final = 128
"""The time to match a pattern grows with its length and that of the names."""


@dataclass(frozen=True)
class Answer:
    """A reply."""

    status: int
    content: str | bytes
    """Text is sent with a final line end, bytes are sent unchanged."""
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = TEXT


@dataclass(frozen=True)
class Request:
    """A request."""

    method: str = "GET"
    query: str = ""
    """The query string of the URL."""
    below: str = ""
    """What follows the path of the route (`Route.below`), still percent-encoded."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers by name in lower case; of duplicate headers, the last."""
    body: bytes = b""
    client: str = ""
    """The address of the client, `ip:port` or `[ip]:port`."""


class Client(Protocol):
    """The client of an exchange."""

    def deliver(self, answer: Answer) -> None:
        """Send the reply, which ends the exchange."""

    def begin(self, answer: Answer) -> None:
        """Send the headers and the first part of a streamed reply."""

    def push(self, data: bytes) -> None:
        """Send another part."""

    def complete(self) -> None:
        """End a streamed reply and the exchange."""

    def fail(self, error: Exception) -> None:
        """Report an internal error."""

    @property
    def reads(self) -> bool:
        """Whether the client has read everything that was sent."""


class Exchange:
    """A request and its reply."""

    def __init__(self, loop: AbstractEventLoop, route: Route, request: Request) -> None:
        self.route = route
        self.request = request
        self.query = request.query
        """The query string of the URL."""
        self.client: Client | None = None
        """The client; None when the reply was sent or the client has disconnected."""
        self._loop = loop
        self._timer: TimerHandle | None = None
        self._at_end: list[Callable[[], None]] = []

    def answer(self, status: int, text: str) -> None:
        """Reply with a text, unless the client has disconnected."""
        self.send(Answer(status, text))

    def send(self, answer: Answer) -> None:
        """Reply with any content, unless the client has disconnected."""
        client = self.client
        self.end()
        if client is not None:
            client.deliver(answer)

    def stream(self, answer: Answer) -> None:
        """Begin a streamed reply, which `push` continues until `finish` or until the client disconnects."""
        if self.client is not None:
            self.client.begin(answer)

    def push(self, data: bytes) -> None:
        """Send the next part. Call it only while the client reads (`reads`), so output does not accumulate."""
        if self.client is not None:
            self.client.push(data)

    def finish(self) -> None:
        """End a streamed reply."""
        client = self.client
        self.end()
        if client is not None:
            client.complete()

    @property
    def reads(self) -> bool:
        """Whether the client is connected and has read everything that was sent."""
        return self.client is not None and self.client.reads

    def run(self, step: Callable[[], None]) -> None:
        """Run a step of the reply, unless the client has disconnected. Errors of the step do not stop the node."""
        client = self.client
        if client is None:
            return
        try:
            step()
        except Exception as error:  # noqa: BLE001 - an internal error must not stop the node
            client.fail(error)

    def call_later(self, delay_s: float, step: Callable[[], None]) -> None:
        """Run `step` after a delay, unless the client has disconnected by then."""
        self._timer = self._loop.call_later(delay_s, self.run, step)

    def at_end(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the exchange has ended, including when the client disconnects."""
        self._at_end.append(callback)

    def now_s(self) -> float:
        """The time of a monotonic clock."""
        return self._loop.time()

    def end(self) -> None:
        """End the exchange: nothing more is sent."""
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
    """A page."""

    path: str
    handler: Handler
    max_pending: int = 1
    """How many requests can be pending; requests with an immediate reply do not count."""
    methods: tuple[str, ...] = READS
    max_body_bytes: int = 0
    """Maximum length of the body of a request; 0 if it must not have one."""
    admits: Callable[[Node, Request], Answer | None] | None = None
    """Returns the answer that refuses a request before its body is read, if the body is large; None accepts it."""
    below: str = ""
    """What may follow the path, after a slash, such as `NAME`; empty if nothing may."""
    listed: bool = True
    """Whether the reply to an unknown page lists this one."""


def at(routes: tuple[Route, ...], path: str) -> Route | None:
    """Return the route of a path."""
    return next((route for route in routes if route.path == path or is_below(route, path)), None)


def is_below(route: Route, path: str) -> bool:
    """Return whether a path is that of a route with something after it."""
    return route.below != "" and path.startswith(f"{route.path}/")


def find(routes: tuple[Route, ...], method: str, path: str) -> Route | Answer:
    """Return the route of a request, or an error reply."""
    route = at(routes, path)
    if route is None:
        pages = ", ".join(
            f"{route.path}/{route.below}" if route.below else route.path for route in routes if route.listed
        )
        return Answer(NOT_FOUND, f"page not found; available pages: {pages}")
    if method in route.methods:
        return route
    text = f"method not allowed; use {route.methods[0]}"
    return Answer(METHOD_NOT_ALLOWED, text, (("Allow", ", ".join(route.methods)),))
