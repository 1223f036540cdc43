"""The HTTP port (`http-port`): answers what is asked, as `httproutes` and the rows given to it say.

h11 reads and writes the protocol. All else here is about bounds, because whoever reaches the port must not be able to
do harm to the clients of the broker, nor to keep probes from being answered:

- One request is taken per turn of the event loop, however many come: clients are served in between.
- There are MOST_CONNECTIONS at most. One more takes the place of the one that has waited longest for a request.
- A request has MOST_BYTES at most, and no body, unless its page takes one (`Route.max_body_bytes`, which is not more
  than MOST_BYTES). What comes while it is answered counts for the next one.
- Within DEADLINE_S a client has sent a whole request, and read the last answer (or the last part of one that goes on),
  or it is hung up on.

The garbage collector is off, so a connection must not be left in a cycle of references when it is gone.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle, Transport
from collections import deque
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import h11

from disqued.core.runtime.failures import report_bug
from disqued.httproutes import (
    CONTENT_TOO_LARGE,
    INTERNAL_ERROR,
    LENGTH_REQUIRED,
    UNAVAILABLE,
    Answer,
    Exchange,
    Request,
    Route,
    at,
    find,
)

if TYPE_CHECKING:
    from disqued.node import Node

MOST_CONNECTIONS: Final = 32
MOST_BYTES: Final = 8 << 10
"""Of a request line with its headers."""
DEADLINE_S: Final = 15.0
MOST_IGNORED_BYTES: Final = 1 << 20
"""What is still read from a client whose request was refused, so that it comes to read why."""

TOO_LONG: Final = 431
_REASONS: Final = {
    TOO_LONG: f"The request is too long: {MOST_BYTES} bytes are possible",
    501: "This way to send a request is not understood",
}
_NO_BODY: Final = "A request has no body here"
_NO_LENGTH: Final = "Say how long the body is (Content-Length)"
_NONSENSE: Final = "This is no request of HTTP"
_FULL: Final = "Too many connections are open"
_WAITING: Final = "Too many requests wait for this page"
OTHER_PAGE: Final = "other"
"""Stands for all pages that there are not."""
_CLOSE: Final = (("Connection", "close"),)
_EVENTS: Final = "text/event-stream"
"""Content that is whole wherever it ends."""
_ENDING: Final = "This node ends"
_FAILED: Final = "Internal error, the server's log has the details"


class HttpConnection:
    """An asyncio protocol: one client, which asks one thing after the other."""

    def __init__(self, port: HttpPort) -> None:
        self._port = port
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_BYTES)
        self._transport: Transport | None = None
        self._deadline: TimerHandle | None = None
        self._exchange: Exchange | None = None
        """The request that is being answered,"""
        self._streaming = False
        """whether its answer began and goes on,"""
        self._endless = False
        """and whether it may end anywhere."""
        self._asked: h11.Request | None = None
        """The request whose body is being read,"""
        self._body = b""
        """and what there is of it."""
        self._ahead_bytes = 0
        """What came since the last request was taken."""
        self._deaf = False
        """Nothing that comes is read any more."""
        self._stuck = False
        """The client does not read what it was sent."""
        self._said_all = False
        """The client sends no more."""
        self._head = False
        """It wants to know of an answer without reading it."""
        self._page = OTHER_PAGE
        """What was asked for last, if there is such a page."""
        self.in_line = False
        """It is to have its turn."""

    # --- what the event loop calls ------------------------------------------------------------------------------------

    def connection_made(self, transport: Transport) -> None:
        """A client is there."""
        self._transport = transport
        transport.set_write_buffer_limits(high=0)  # the next request is taken when the last answer is on its way
        self._arm()
        if not self._port.admit(self):
            self._deaf = True
            self._write(Answer(UNAVAILABLE, _FULL, _CLOSE))
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Part of a request, or more."""
        self._ahead_bytes += len(data)
        if self._deaf:
            if self._ahead_bytes > MOST_IGNORED_BYTES:
                self.hang_up()
            return
        if self._ahead_bytes > 2 * MOST_BYTES:
            if self._exchange is not None or self._stuck:
                self.hang_up()
            else:
                self._refuse(TOO_LONG, _REASONS[TOO_LONG])
            return
        self._parser.receive_data(data)
        self._want_turn()

    def eof_received(self) -> bool:
        """The client sends no more. What it asked just before is still answered; who waits for an answer is gone."""
        self._said_all = True
        if self._deaf or self._exchange is not None:
            return False
        self._parser.receive_data(b"")
        self._want_turn()
        return True

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._stuck = True
        if self._streaming:
            self._arm()

    def resume_writing(self) -> None:
        """It has read all."""
        self._stuck = False
        if self._streaming:
            self._disarm()
        self._want_turn()

    def connection_lost(self, _error: Exception | None) -> None:
        """The client is gone."""
        self._transport = None
        self._disarm()
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.end()
            self._port.ended(exchange.route)
        self._port.lost(self)

    # --- its time -----------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """From now on there is DEADLINE_S to go on."""
        self._disarm()
        self._deadline = self._port.loop.call_later(DEADLINE_S, self._too_late)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        self.hang_up()

    def hang_up(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    # --- requests -----------------------------------------------------------------------------------------------------

    def _want_turn(self) -> None:
        if not self.in_line and self._exchange is None and not self._stuck and not self._deaf:
            self._port.line_up(self)

    def take(self) -> None:
        """It has its turn: take a request, if there is a whole one."""
        if self._transport is None or self._exchange is not None or self._stuck or self._deaf:
            return
        try:
            self._read_on()
        except h11.RemoteProtocolError as error:
            error.__traceback__ = None  # it leads back to the error, and nobody collects cycles
            status = error.error_status_hint
            self._refuse(status, _REASONS.get(status, _NONSENSE))

    def _read_on(self) -> None:
        """Read of a request what is there, and have it answered when it is whole."""
        parser = self._parser
        event = parser.next_event()
        if isinstance(event, h11.Request):
            route = at(self._port.routes, _path(event))
            refusal = _refuse_body(event, route.max_body_bytes if route is not None else 0)
            if refusal is not None:
                self._refuse(*refusal)
                return
            self._asked = event
            event = parser.next_event()
        while isinstance(event, h11.Data):
            self._body += event.data
            event = parser.next_event()
        if isinstance(event, h11.EndOfMessage):
            asked, body = self._asked, self._body
            self._asked, self._body = None, b""
            if asked is not None:
                self._begin(asked, body)
        elif self._transport is not None and (event is h11.PAUSED or isinstance(event, h11.ConnectionClosed)):
            self._transport.close()

    def _begin(self, asked: h11.Request, body: bytes) -> None:
        """Have a request answered."""
        self._ahead_bytes = len(self._parser.trailing_data[0])
        self._head = asked.method == b"HEAD"
        self._disarm()
        method = asked.method.decode("ascii", "replace")
        route = find(self._port.routes, method, _path(asked))
        self._page = route.path if isinstance(route, Route) else OTHER_PAGE
        if isinstance(route, Answer):
            self._send(route)
        elif self._port.may_begin(route):
            query = asked.target.decode("ascii", "replace").partition("?")[2]
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in asked.headers}
            exchange = Exchange(self._port.loop, route, Request(method, query, headers, body, self._address()))
            exchange.client = self
            self._exchange = exchange
            self._port.began(self, route)
            exchange.run(lambda: exchange.route.handler(self._port.node, exchange))
        else:
            self._send(Answer(UNAVAILABLE, _WAITING))

    def _address(self) -> str:
        """Of the client."""
        peer = self._transport.get_extra_info("peername") if self._transport is not None else None
        if not isinstance(peer, tuple):
            return "?:0"
        return f"[{peer[0]}]:{peer[1]}" if ":" in peer[0] else f"{peer[0]}:{peer[1]}"

    # --- what an exchange calls ---------------------------------------------------------------------------------------

    @property
    def reads(self) -> bool:
        """Whether the client took all it was sent."""
        return not self._stuck

    def deliver(self, answer: Answer) -> None:
        """The exchange is over."""
        self._end_exchange()
        if self._streaming:
            self.hang_up()  # half an answer is there already
        else:
            self._send(answer)

    def begin(self, answer: Answer) -> None:
        """An answer begins whose content comes in parts."""
        self._streaming = True
        self._endless = answer.content_type.startswith(_EVENTS)
        if self._transport is not None:
            self._transport.write(self._start(answer, ()) + self._part(_bytes(answer)))

    def push(self, data: bytes) -> None:
        """One more part of it."""
        if self._transport is not None:
            self._transport.write(self._part(data))

    def complete(self) -> None:
        """That was the last part."""
        self._end_exchange()
        self._streaming = False
        if self._transport is not None:
            self._transport.write(self._parser.send(h11.EndOfMessage()) or b"")
            self._await_next()

    def _end_exchange(self) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            self._port.ended(exchange.route)

    def fail(self, bug: Exception) -> None:
        """Whatever goes wrong with one page, the broker goes on."""
        exchange = self._exchange
        if exchange is not None:
            report_bug(self._port.node.state, f"the page {exchange.route.path} could not be made", bug)
            exchange.answer(INTERNAL_ERROR, _FAILED)

    # --- answers ------------------------------------------------------------------------------------------------------

    def _refuse(self, status: int, text: str) -> None:
        """Say what is wrong, and end: whatever else comes can not be understood."""
        self._deaf = True
        self._ahead_bytes = 0
        self._page = OTHER_PAGE
        self._write(Answer(status, text, _CLOSE))
        if self._transport is None:
            return
        if self._said_all:
            self._transport.close()
        else:  # closing now would reset the connection, and the client would not come to read it
            self._transport.write_eof()

    def end(self) -> None:
        """The node ends."""
        if self._streaming and not self._endless:
            self.hang_up()  # a clean end would make half a page look whole
            return
        if self._streaming and self._transport is not None:
            self._transport.write(self._parser.send(h11.EndOfMessage()) or b"")
        elif self._exchange is not None:
            self._exchange.answer(UNAVAILABLE, _ENDING)
        if self._transport is not None:
            self._transport.close()

    def _send(self, answer: Answer) -> None:
        """Answer."""
        self._write(answer)
        if self._transport is not None:
            self._await_next()

    def _await_next(self) -> None:
        """Wait for the next request if the client wants to ask one."""
        assert self._transport is not None
        self._arm()
        self._port.waits(self)
        if self._parser.our_state is h11.DONE and self._parser.their_state is h11.DONE:
            self._parser.start_next_cycle()
            self._want_turn()
        else:
            self._transport.close()

    def _write(self, answer: Answer) -> None:
        """Put an answer into bytes and on its way."""
        if self._transport is None:
            return
        body = _bytes(answer)
        made = self._start(answer, (("Content-Length", str(len(body))),))
        made += self._part(body)
        made += self._parser.send(h11.EndOfMessage()) or b""
        self._transport.write(made)

    def _part(self, data: bytes) -> bytes:
        """Some of the content, unless the client wants to know of it only."""
        return self._parser.send(h11.Data(data=b"" if self._head else data)) or b""

    def _start(self, answer: Answer, length: tuple[tuple[str, str], ...]) -> bytes:
        """What stands before the content."""
        self._port.count(self._page, answer.status)
        headers = [
            ("Date", formatdate(usegmt=True)),
            ("Content-Type", answer.content_type),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
            *length,
            *answer.headers,
        ]
        status = HTTPStatus(answer.status)
        head = h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())
        return self._parser.send(head) or b""


def _bytes(answer: Answer) -> bytes:
    """The content as it travels."""
    return answer.content.encode() + b"\n" if isinstance(answer.content, str) else answer.content


def _path(asked: h11.Request) -> str:
    """Without what stands behind the question mark."""
    return asked.target.decode("ascii", "replace").partition("?")[0]


def _refuse_body(asked: h11.Request, most_bytes: int) -> tuple[int, str] | None:
    """Why the body of a request is not taken; None when it is, or when there is none."""
    fields = dict(asked.headers)
    chunked = b"transfer-encoding" in fields
    length = int(fields.get(b"content-length", b"0"))
    if most_bytes == 0:
        return (CONTENT_TOO_LARGE, _NO_BODY) if chunked or length else None
    if chunked:
        return LENGTH_REQUIRED, _NO_LENGTH
    return (CONTENT_TOO_LARGE, f"A body has {most_bytes} bytes at most here") if length > most_bytes else None


class HttpPort:
    """All connections to the HTTP port of one node."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        node: Node,
        routes: tuple[Route, ...],
        answers: dict[tuple[str, int], int] | None = None,
    ) -> None:
        self.loop = loop
        self.node = node
        self.routes = routes
        self._connections: dict[HttpConnection, None] = {}
        self._idle: dict[HttpConnection, None] = {}
        """Those that wait for a request, the one that has waited longest first."""
        self._line: deque[HttpConnection] = deque()
        """Those that may have sent one."""
        self._turn_comes = False
        self._open: dict[str, int] = {}
        """How many requests for a page wait for their answers."""
        self.answers = {} if answers is None else answers
        """How many were given, by page and status."""

    def accept(self) -> HttpConnection:
        """The protocol of a new connection."""
        return HttpConnection(self)

    @property
    def connected(self) -> int:
        """How many clients there are."""
        return len(self._connections)

    def admit(self, connection: HttpConnection) -> bool:
        """A client came; False when there is no room for it."""
        room = len(self._connections) < MOST_CONNECTIONS
        self._connections[connection] = None
        if not room:
            if not self._idle:
                return False
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            oldest.hang_up()
        self._idle[connection] = None
        return True

    def lost(self, connection: HttpConnection) -> None:
        """A client is gone."""
        self._connections.pop(connection, None)
        self._idle.pop(connection, None)

    def waits(self, connection: HttpConnection) -> None:
        """A client has its answer, and may ask again."""
        self._idle.pop(connection, None)
        self._idle[connection] = None

    def count(self, page: str, status: int) -> None:
        """One more answer."""
        self.answers[page, status] = self.answers.get((page, status), 0) + 1

    def may_begin(self, route: Route) -> bool:
        """Whether one more request for a page may wait."""
        return self._open.get(route.path, 0) < route.max_pending

    def began(self, connection: HttpConnection, route: Route) -> None:
        """A request is being answered."""
        self._idle.pop(connection, None)
        self._open[route.path] = self._open.get(route.path, 0) + 1

    def ended(self, route: Route) -> None:
        """A request is answered, or nobody waits for it any more."""
        self._open[route.path] -= 1

    def line_up(self, connection: HttpConnection) -> None:
        """A client is to have its turn."""
        connection.in_line = True
        self._line.append(connection)
        self._go_on()

    def _go_on(self) -> None:
        """See that there is one turn to come, if anybody waits for it."""
        if self._line and not self._turn_comes:
            self._turn_comes = True
            self.loop.call_soon(self._turn)

    def _turn(self) -> None:
        """One client, once per turn of the event loop."""
        self._turn_comes = False
        connection = self._line.popleft()
        connection.in_line = False
        try:
            connection.take()
        finally:
            self._go_on()

    def end(self) -> None:
        """Close all, those first that wait for an answer."""
        for connection in list(self._connections):
            connection.end()
