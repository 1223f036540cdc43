"""The HTTP port (`http-port`): answers probes, as `httproutes` and the rows given to it say.

h11 reads and writes the protocol. All else here is about bounds, because whoever reaches the port must not be able to
do harm to the clients of the broker, nor to keep probes from being answered:

- One request is taken per turn of the event loop, however many come: clients are served in between.
- There are MOST_CONNECTIONS at most. One more takes the place of the one that has waited longest for a request.
- A request has MOST_BYTES at most, and no body. What comes while it is answered counts for the next one.
- Within DEADLINE_S a client has sent a whole request, and read the last answer, or it is hung up on.

The garbage collector is off, so a connection must not be left in a cycle of references when it is gone.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle, Transport
from collections import deque
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import h11

from disqued.core.bugs import report_bug
from disqued.server.httproutes import BUG, CONTENT_TOO_LARGE, UNAVAILABLE, Answer, Exchange, Route, find

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
_NONSENSE: Final = "This is no request of HTTP"
_FULL: Final = "Too many connections are open"
_WAITING: Final = "Too many requests wait for this page"
_CLOSE: Final = (("Connection", "close"),)
_ENDING: Final = "This node ends"


class HttpConnection:
    """An asyncio protocol: one client, which asks one thing after the other."""

    def __init__(self, port: HttpPort) -> None:
        self._port = port
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_BYTES)
        self._transport: Transport | None = None
        self._deadline: TimerHandle | None = None
        self._exchange: Exchange | None = None
        """The request that is being answered."""
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

    def resume_writing(self) -> None:
        """It has read all."""
        self._stuck = False
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
            event = self._parser.next_event()
            if isinstance(event, h11.Request):
                if _has_body(event):
                    self._refuse(CONTENT_TOO_LARGE, _NO_BODY)
                    return
                self._parser.next_event()  # its end, which there is without a body
                self._begin(event)
            elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                self._transport.close()
        except h11.RemoteProtocolError as error:
            error.__traceback__ = None  # it leads back to the error, and nobody collects cycles
            status = error.error_status_hint
            self._refuse(status, _REASONS.get(status, _NONSENSE))

    def _begin(self, request: h11.Request) -> None:
        """Have a request answered."""
        self._ahead_bytes = len(self._parser.trailing_data[0])
        self._head = request.method == b"HEAD"
        self._disarm()
        path, _, query = request.target.decode("ascii", "replace").partition("?")
        route = find(self._port.routes, request.method.decode("ascii", "replace"), path)
        if isinstance(route, Answer):
            self._send(route)
        elif self._port.may_begin(route):
            exchange = Exchange(self._port.loop, route, query)
            exchange.deliver = self._deliver
            self._exchange = exchange
            self._port.began(self, route)
            self._run(exchange)
        else:
            self._send(Answer(UNAVAILABLE, _WAITING))

    def _run(self, exchange: Exchange) -> None:
        """Whatever goes wrong with one page, the broker goes on."""
        node = self._port.node
        try:
            exchange.route.handler(node, exchange)
        except Exception as bug:  # noqa: BLE001 - a mistake of ours must not end the node
            report_bug(node.state, f"the page {exchange.route.path} could not be made", bug)
            exchange.answer(BUG, "Internal error, the server's log has the details")

    def _deliver(self, answer: Answer) -> None:
        """The exchange is over."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            self._port.ended(exchange.route)
        self._send(answer)

    def _refuse(self, status: int, text: str) -> None:
        """Say what is wrong, and end: whatever else comes can not be understood."""
        self._deaf = True
        self._ahead_bytes = 0
        self._write(Answer(status, text, _CLOSE))
        if self._transport is None:
            return
        if self._said_all:
            self._transport.close()
        else:  # closing now would reset the connection, and the client would not come to read it
            self._transport.write_eof()

    def end(self) -> None:
        """The node ends."""
        if self._exchange is not None:
            self._exchange.answer(UNAVAILABLE, _ENDING)
        if self._transport is not None:
            self._transport.close()

    def _send(self, answer: Answer) -> None:
        """Answer, and wait for the next request if the client wants to ask one."""
        self._write(answer)
        if self._transport is None:
            return
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
        body = answer.text.encode() + b"\n"
        headers = [
            ("Date", formatdate(usegmt=True)),
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            *answer.headers,
        ]
        parser = self._parser
        status = HTTPStatus(answer.status)
        made = parser.send(h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())) or b""
        made += parser.send(h11.Data(data=b"" if self._head else body)) or b""
        made += parser.send(h11.EndOfMessage()) or b""
        self._transport.write(made)


def _has_body(request: h11.Request) -> bool:
    """Whether more belongs to it than its headers."""
    fields = dict(request.headers)
    return b"transfer-encoding" in fields or fields.get(b"content-length", b"0") != b"0"


class HttpPort:
    """All connections to the HTTP port of one node."""

    def __init__(self, loop: AbstractEventLoop, node: Node, routes: tuple[Route, ...]) -> None:
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

    def may_begin(self, route: Route) -> bool:
        """Whether one more request for a page may wait."""
        return self._open.get(route.path, 0) < route.most

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
