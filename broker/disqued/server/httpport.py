"""The HTTP port (`http-port`): serves the routes given to it (`httproutes`).

h11 parses and writes the protocol. The rest are limits, so that a client of this port can neither slow down the clients
of the broker nor block probes:

- Each turn of the event loop takes one request; clients of the broker are served in between.
- At most MOST_CONNECTIONS are open. One more replaces a connection of the address that has most of them: the one that
  has been idle longest, or else the oldest one. So one address cannot keep the others out.
- A request has at most MOST_BYTES, and no body unless its page accepts one (`Route.max_body_bytes`). A body above
  MOST_BYTES is read only after its page has accepted the request (`Route.admits`), and all such bodies together have at
  most MOST_BODIES_BYTES. Data that arrives during an answer counts for the next request.
- Within DEADLINE_S a client must send a complete request and read the previous answer, or the last part of a stream.
  Otherwise the connection is closed.

The garbage collector is off, so a closed connection must not be part of a reference cycle.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle, Transport
from collections import Counter, deque
from dataclasses import replace
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import h11

from disqued.core.clients.origin import origin_of
from disqued.core.runtime.failures import report_bug
from disqued.httproutes import (
    INTERNAL_ERROR,
    UNAVAILABLE,
    Answer,
    Exchange,
    Request,
    Route,
    at,
    find,
)
from disqued.server.httprequest import MOST_BYTES, is_long, length_of, path_of, refuse_body

if TYPE_CHECKING:
    from disqued.node import Node

MOST_CONNECTIONS: Final = 32
"""Unless the port has more (`HttpPort.most_connections`). With TLS, as many handshakes may run beside them."""
MOST_BODIES_BYTES: Final = 32 << 20
"""How much all large bodies may have together, from the moment when they are announced to the end of the answer."""
SENT_BYTES: Final = 4 << 10
"""An answer of which no more is left counts as sent; TLS also has output of its own, right after the handshake."""
DEADLINE_S: Final = 15.0
MOST_IGNORED_BYTES: Final = 1 << 20
"""How much is still read from a client whose request was refused, so that it can read the reason."""

TOO_LONG: Final = 431
_REASONS: Final = {
    TOO_LONG: f"the request is longer than {MOST_BYTES} bytes",
    501: "this transfer encoding is not supported",
}
_NOT_HTTP: Final = "this is not an HTTP request"
_BODIES_FULL: Final = "too many large requests at the same time; try again later"
_FULL: Final = "too many connections"
_WAITING: Final = "too many pending requests for this page"
OTHER_PAGE: Final = "other"
"""The label of all pages that do not exist."""
_CLOSE: Final = (("Connection", "close"),)
_EVENTS: Final = "text/event-stream"
"""A content type whose content may end anywhere."""
_ENDING: Final = "this node is shutting down"
_FAILED: Final = "internal error; see the server's log"


class HttpConnection:
    """An asyncio protocol: one client, which sends one request after the other."""

    def __init__(self, port: HttpPort) -> None:
        self._port = port
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_BYTES)
        self._transport: Transport | None = None
        self._deadline: TimerHandle | None = None
        self._exchange: Exchange | None = None
        """The request that is being answered."""
        self._streaming = False
        """Whether the answer is being streamed."""
        self._endless = False
        """Whether the stream may end anywhere."""
        self._asked: h11.Request | None = None
        """The request whose body is being read."""
        self._body = bytearray()
        """The body that has arrived so far."""
        self._reserved_bytes = 0
        """How much of MOST_BODIES_BYTES the present request has."""
        self._reading_paused = False
        """Whether no more input is read until what has arrived was parsed."""
        self._ahead_bytes = 0
        """How many bytes have arrived since the last request was taken."""
        self._ignores_input = False
        """Whether input is ignored from now on."""
        self._write_paused = False
        """Whether the client has not read all that was sent."""
        self._said_all = False
        """Whether the client has closed its side."""
        self._head = False
        """Whether the request is a HEAD."""
        self._page = OTHER_PAGE
        """The page of the last request, if it exists."""
        self.in_line = False
        """Whether it waits for its turn."""
        self.origin = ""
        """The network of the client: the connections of one origin share their places."""

    # --- callbacks of the event loop ----------------------------------------------------------------------------------

    def connection_made(self, transport: Transport) -> None:
        """A client has connected."""
        self._transport = transport
        self.origin = origin_of(self._address())
        transport.set_write_buffer_limits(high=SENT_BYTES)  # take the next request when the last answer is sent
        self._arm()
        if not self._port.admit(self):
            self._ignores_input = True
            self._write(Answer(UNAVAILABLE, _FULL, _CLOSE))
            transport.close()

    def data_received(self, data: bytes) -> None:
        """A part of a request, or more, has arrived."""
        self._ahead_bytes += len(data)
        if self._ignores_input:
            if self._ahead_bytes > MOST_IGNORED_BYTES:
                self.hang_up()
            return
        if self._ahead_bytes > 2 * MOST_BYTES:
            if self._exchange is not None or self._write_paused:
                self.hang_up()
                return
            self._pause_reading()
        self._parser.receive_data(data)
        self._want_turn()

    def eof_received(self) -> bool:
        """The client closed its side: a request that was just sent is answered, one that is pending is dropped.

        A transport with TLS has no such half: it closes when this returns, and warns if it should not.
        """
        self._said_all = True
        two_halves = self._transport is not None and self._transport.can_write_eof()
        if self._ignores_input or self._exchange is not None or not two_halves:
            self._drop_exchange()  # now: a page must not answer a connection that is about to close
            return False
        self._parser.receive_data(b"")
        self._want_turn()
        return True

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._write_paused = True
        if self._streaming:
            self._arm()

    def resume_writing(self) -> None:
        """The client has read everything."""
        self._write_paused = False
        if self._streaming:
            self._disarm()
        self._want_turn()

    def connection_lost(self, _error: Exception | None) -> None:
        """The connection is closed."""
        self._transport = None
        self._disarm()
        self._release()
        self._drop_exchange()
        self._port.lost(self)

    def _drop_exchange(self) -> None:
        """End the request that is being answered: the client is gone."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.end()
            self._port.ended(exchange.route)

    def _pause_reading(self) -> None:
        """Read no more until what has arrived was parsed."""
        if self._transport is not None and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def _read_on(self) -> None:
        """Read again."""
        if self._transport is not None and self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()

    # --- deadline -----------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Start the deadline."""
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
        self._drop_exchange()

    # --- requests -----------------------------------------------------------------------------------------------------

    def _want_turn(self) -> None:
        if not self.in_line and self._exchange is None and not self._write_paused and not self._ignores_input:
            self._port.line_up(self)

    def take(self) -> None:
        """Take one request, if it is complete."""
        if self._transport is None or self._exchange is not None or self._write_paused or self._ignores_input:
            return
        try:
            self._parse()
        except h11.RemoteProtocolError as error:
            error.__traceback__ = None  # it refers to the error: a cycle
            status = error.error_status_hint
            self._refuse(Answer(status, _REASONS.get(status, _NOT_HTTP)))

    def _parse(self) -> None:
        """Parse the input, and start to answer the request if it is complete."""
        parser = self._parser
        if self._asked is None and self._ahead_bytes > 2 * MOST_BYTES and is_long(parser.trailing_data[0]):
            self._refuse(Answer(TOO_LONG, _REASONS[TOO_LONG]))  # the parser would accept it, as it is complete
            return
        event = parser.next_event()
        if isinstance(event, h11.Request):
            self._head = event.method == b"HEAD"
            refusal = self._accept_body(event)
            if refusal is not None:
                self._refuse(refusal)
                return
            self._asked = event
            event = parser.next_event()
        while isinstance(event, h11.Data):
            self._body += event.data
            event = parser.next_event()
        if isinstance(event, h11.EndOfMessage):
            asked, body = self._asked, bytes(self._body)
            self._asked, self._body = None, bytearray()
            if asked is not None:
                self._begin(asked, body)
        elif event is h11.NEED_DATA:
            self._ahead_bytes = len(parser.trailing_data[0])
            self._read_on()
        elif self._transport is not None and (event is h11.PAUSED or isinstance(event, h11.ConnectionClosed)):
            self._transport.close()

    def _accept_body(self, asked: h11.Request) -> Answer | None:
        """Prepare to read the body of a request, if it has one; returns the answer if it is refused."""
        route = at(self._port.routes, path_of(asked))
        refusal = refuse_body(asked, route.max_body_bytes if route is not None else 0)
        if refusal is not None:
            return Answer(*refusal)
        length = length_of(asked)
        if length > MOST_BYTES and route is not None:
            refused = None if route.admits is None else route.admits(self._port.node, self._request(asked, route, b""))
            if refused is not None:
                return refused
            if not self._port.reserve(length):
                return Answer(UNAVAILABLE, _BODIES_FULL, (("Retry-After", "1"),))
            self._reserved_bytes = length
        if self._parser.they_are_waiting_for_100_continue and self._transport is not None:
            self._transport.write(self._parser.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
        return None

    def _request(self, asked: h11.Request, route: Route, body: bytes) -> Request:
        """The request as its page gets it."""
        query = asked.target.decode("ascii", "replace").partition("?")[2]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in asked.headers}
        below = path_of(asked).removeprefix(route.path).removeprefix("/")
        return Request(asked.method.decode("ascii", "replace"), query, below, headers, body, self._address())

    def _begin(self, asked: h11.Request, body: bytes) -> None:
        """Start to answer a request."""
        self._ahead_bytes = len(self._parser.trailing_data[0])
        if self._ahead_bytes <= 2 * MOST_BYTES:
            self._read_on()
        self._disarm()
        method = asked.method.decode("ascii", "replace")
        route = find(self._port.routes, method, path_of(asked))
        self._page = route.path if isinstance(route, Route) else OTHER_PAGE
        if isinstance(route, Answer):
            self._send(route)
        elif self._port.may_begin(route):
            exchange = Exchange(self._port.loop, route, self._request(asked, route, body))
            exchange.client = self
            self._exchange = exchange
            self._port.began(self, route)
            exchange.run(lambda: exchange.route.handler(self._port.node, exchange))
        else:
            self._send(Answer(UNAVAILABLE, _WAITING))

    def _address(self) -> str:
        """The address of the client."""
        peer = self._transport.get_extra_info("peername") if self._transport is not None else None
        if not isinstance(peer, tuple):
            return "?:0"
        return f"[{peer[0]}]:{peer[1]}" if ":" in peer[0] else f"{peer[0]}:{peer[1]}"

    # --- calls of an exchange -----------------------------------------------------------------------------------------

    @property
    def reads(self) -> bool:
        """Whether the client has read everything that was sent."""
        return not self._write_paused

    def deliver(self, answer: Answer) -> None:
        """Send the answer and end the exchange."""
        self._end_exchange()
        if self._streaming:
            self.hang_up()  # part of an answer was already sent
        else:
            self._send(answer)

    def begin(self, answer: Answer) -> None:
        """Start an answer that is sent in parts."""
        self._streaming = True
        self._endless = answer.content_type.startswith(_EVENTS)
        if self._transport is not None:
            self._transport.write(self._start(answer, ()) + self._part(_bytes(answer)))

    def push(self, data: bytes) -> None:
        """Send another part."""
        if self._transport is not None:
            self._transport.write(self._part(data))

    def complete(self) -> None:
        """End the answer after its last part."""
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
        """Report a bug in a page; the broker continues."""
        exchange = self._exchange
        if exchange is not None:
            report_bug(self._port.node.state, f"the page {exchange.route.path} could not be made", bug)
            exchange.answer(INTERNAL_ERROR, _FAILED)

    # --- answers ------------------------------------------------------------------------------------------------------

    def _refuse(self, answer: Answer) -> None:
        """Answer with an error and close: further input cannot be parsed."""
        self._ignores_input = True
        self._ahead_bytes = 0
        self._page = OTHER_PAGE
        self._read_on()
        self._write(replace(answer, headers=(*answer.headers, *_CLOSE)))
        if self._transport is None:
            return
        if self._said_all:
            self._transport.close()
        elif self._transport.can_write_eof():  # closing now would reset the connection before the answer is read
            self._transport.write_eof()
        # With TLS there is no such half: the client closes the connection, or the deadline does.

    def end(self) -> None:
        """Close the connection because the node shuts down."""
        if self._streaming and not self._endless:
            self.hang_up()  # a clean end would make the partial page look complete
            return
        if self._streaming and self._transport is not None:
            self._transport.write(self._parser.send(h11.EndOfMessage()) or b"")
        elif self._exchange is not None:
            self._exchange.answer(UNAVAILABLE, _ENDING)
        if self._transport is not None:
            self._transport.close()

    def _release(self) -> None:
        """The body of the request is not needed any more."""
        self._port.release(self._reserved_bytes)
        self._reserved_bytes = 0

    def _send(self, answer: Answer) -> None:
        """Send an answer and wait for the next request."""
        self._write(answer)
        if self._transport is not None:
            self._await_next()

    def _await_next(self) -> None:
        """Wait for the next request, if the client keeps the connection open."""
        assert self._transport is not None
        self._release()
        self._arm()
        self._port.waits(self)
        if self._parser.our_state is h11.DONE and self._parser.their_state is h11.DONE:
            self._parser.start_next_cycle()
            self._head = False
            self._want_turn()
        else:
            self._transport.close()

    def _write(self, answer: Answer) -> None:
        """Encode and send an answer."""
        if self._transport is None:
            return
        body = _bytes(answer)
        made = self._start(answer, (("Content-Length", str(len(body))),))
        made += self._part(body)
        made += self._parser.send(h11.EndOfMessage()) or b""
        self._transport.write(made)

    def _part(self, data: bytes) -> bytes:
        """A part of the content, empty for a HEAD."""
        return self._parser.send(h11.Data(data=b"" if self._head else data)) or b""

    def _start(self, answer: Answer, length: tuple[tuple[str, str], ...]) -> bytes:
        """The status line and the headers."""
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
    """The encoded content."""
    return answer.content.encode() + b"\n" if isinstance(answer.content, str) else answer.content


class HttpPort:
    """All connections to the HTTP port of one node."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        node: Node,
        routes: tuple[Route, ...],
        answers: dict[tuple[str, int], int] | None = None,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        self.loop = loop
        self.node = node
        self.routes = routes
        self.most_connections = most_connections
        self._bodies_bytes = 0
        """How much all large bodies have together."""
        self._connections: dict[HttpConnection, None] = {}
        self._idle: dict[HttpConnection, None] = {}
        """Idle connections, the longest idle first."""
        self._line: deque[HttpConnection] = deque()
        """Connections that may have sent a request."""
        self._turn_comes = False
        self._open: dict[str, int] = {}
        """How many requests are pending, by page."""
        self.answers = {} if answers is None else answers
        """How many answers were sent, by page and status."""

    def accept(self) -> HttpConnection:
        """The protocol of a new connection."""
        return HttpConnection(self)

    @property
    def connected(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    def admit(self, connection: HttpConnection) -> bool:
        """Register a connection; False if there is no room for it."""
        room = len(self._connections) < self.most_connections or self._make_room()
        self._connections[connection] = None
        if room:
            self._idle[connection] = None
        return room

    def _make_room(self) -> bool:
        """Close a connection of the address that has most; False if each connection is busy and of another address."""
        counts = Counter(connection.origin for connection in self._connections)
        candidates = self._idle or self._connections
        victim = max(candidates, key=lambda connection: counts[connection.origin])  # of equals the first: the oldest
        if victim not in self._idle and counts[victim.origin] == 1:
            return False
        self.lost(victim)
        victim.hang_up()
        return True

    def lost(self, connection: HttpConnection) -> None:
        """Remove a connection."""
        self._connections.pop(connection, None)
        self._idle.pop(connection, None)

    def waits(self, connection: HttpConnection) -> None:
        """Mark a connection as idle."""
        self._idle.pop(connection, None)
        self._idle[connection] = None

    def count(self, page: str, status: int) -> None:
        """Count an answer."""
        self.answers[page, status] = self.answers.get((page, status), 0) + 1

    def reserve(self, size: int) -> bool:
        """Reserve room for a large body; False if all together would be too large."""
        if self._bodies_bytes + size > MOST_BODIES_BYTES:
            return False
        self._bodies_bytes += size
        return True

    def release(self, size: int) -> None:
        """Release the room of a body."""
        self._bodies_bytes -= size

    def may_begin(self, route: Route) -> bool:
        """Whether another request for a page is allowed."""
        return self._open.get(route.path, 0) < route.max_pending

    def began(self, connection: HttpConnection, route: Route) -> None:
        """Count a pending request."""
        self._idle.pop(connection, None)
        self._open[route.path] = self._open.get(route.path, 0) + 1

    def ended(self, route: Route) -> None:
        """A request is answered or was dropped."""
        self._open[route.path] -= 1

    def line_up(self, connection: HttpConnection) -> None:
        """Schedule a turn for a connection."""
        connection.in_line = True
        self._line.append(connection)
        self._schedule()

    def _schedule(self) -> None:
        """Schedule the next turn, if any connection waits."""
        if self._line and not self._turn_comes:
            self._turn_comes = True
            self.loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Serve one connection, once per turn of the event loop."""
        self._turn_comes = False
        connection = self._line.popleft()
        connection.in_line = False
        try:
            connection.take()
        finally:
            self._schedule()

    def end(self) -> None:
        """Close all connections, after answering pending requests."""
        for connection in list(self._connections):
            connection.end()
