"""The connection of a client as the node sees it: its input, its replies, and its settings.

A session has no socket. Replies are appended to `out`, and the driver writes the output of the sessions that the node
names. The server's connection class derives from this one.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.access.user import User
from disqued.core.timers.alarm import Alarm
from disqued.resp import writer
from disqued.resp.request import RequestParser

RESP2: Final = 2
RESP3: Final = 3

REPLY_ON: Final = 0
REPLY_OFF: Final = 1
REPLY_SKIP: Final = 2


class Session:
    """A connected client."""

    def __init__(self, address: bytes, now_ms: i64) -> None:
        self.number: i64 = 0
        """The client ID, beginning with 1; set by the node."""
        self.address = address
        """As in CLIENT LIST: `ip:port`, `[ip]:port`, or the path of a Unix socket and `:0`."""
        self.unix_socket: bool = False
        self.external: bool = False
        """Whether the client is connected to a port for clients outside of the network of the nodes."""
        self.tls: bool = False
        """Whether the connection uses TLS."""
        self.certificate_name = b""
        """The common name of the certificate that the client proved to have; empty without one."""
        self.descriptor: i64 = -1
        self.created_ms: i64 = now_ms
        self.active_ms: i64 = now_ms
        self.parser = RequestParser()
        self.input_bytes: i64 = 0
        """Input that waits to be parsed, as counted by `memory.accounting`."""
        self.input_since_ms: i64 = now_ms
        """Since when that input waits for its end, or for its turn: no request has run since then."""
        self.out: list[bytes] = []
        self.protocol: i64 = RESP2
        self.user: User | None = None
        """Who it is (`runtime.authentication`); None until it has logged in, if that is necessary."""
        self.login = b""
        """The digest of the password with which it logged in; empty if it needed none."""
        self.unrestricted: bool = False
        """Whether its requests need no check (`runtime.authorization`)."""
        self.name = b""
        self.library = b""
        self.library_version = b""
        self.last_command = b"NULL"
        self.blocked: Blocked | None = None
        self.flushing: bool = False
        """On the list of sessions with output."""
        self.tells_of: i64 = 0
        """The last group of changes (`Ready.logged`) on which replies of this session may depend."""
        self.held: deque[list[bytes]] | None = None
        """Output that the durability barrier holds back (`output.barrier`): one list per group of changes."""
        self.held_for: i64 = 0
        """The last of these groups."""
        self.held_bytes: i64 = 0
        """The size of that output."""
        self.monitor: bool = False
        self.consumes: bool = False
        """A room must know when the connection closes (`Listener.consumer_gone`)."""
        self.reply_mode: i64 = REPLY_ON
        self.closing: bool = False
        """No more commands are read; the connection closes when the output is written."""
        self.interrupted: bool = False
        """Its further requests wait for the next turn, because those before took long."""
        self.input_ended: bool = False
        """The client will send no more, and the connection closes when its requests were run."""
        self.closed: bool = False
        """The connection is closed, or closes without waiting for its output."""
        self.soft_limit_since_ms: i64 = 0
        """When the output exceeded the soft limit; 0 while it is below."""
        self.unread_bytes: i64 = 0
        """How much output waited at the last check of client limits (`runtime.clientlimits`)."""
        self.stalled: i64 = 0
        """At how many checks in a row that was not less than at the one before."""
        self.origin = ""
        """The network of a client that must authenticate (`clients.origin`)."""
        self.unauthenticated_ms: i64 = now_ms
        """Since when the client has to authenticate."""
        self._counted: i64 = 0
        self._counted_bytes: i64 = 0

    def end_input(self) -> bool:
        """The client will send no more. Returns whether the connection can close, because no reply comes soon."""
        blocked = self.blocked
        if self.interrupted or (blocked is not None and blocked.completes):
            self.input_ended = True
            return False
        self.closing = True
        return True

    def may_run(self) -> bool:
        """Whether to look at the next request: the client is not blocked, or the request may follow the waiting one."""
        blocked = self.blocked
        return (blocked is None or blocked.open) and not self.interrupted

    def output_bytes(self) -> int:
        """Bytes of output that the network has not accepted."""
        return sum(map(len, self.out)) + self.unsent_bytes()

    def recount(self) -> None:
        """Count `out` from scratch at the next `new_bytes`: its parts may have changed."""
        self._counted = 0
        self._counted_bytes = 0

    def new_bytes(self) -> i64:
        """Bytes in `out`. Until `recount`, only the parts that were added since the last call are counted."""
        out = self.out
        while self._counted < len(out):
            self._counted_bytes += len(out[self._counted])
            self._counted += 1
        return self._counted_bytes

    def unsent_bytes(self) -> int:
        """Bytes of output that left `out`; the server adds what it buffers."""
        return int(self.held_bytes)

    def watch_output(self) -> None:
        """More output is held. The server disconnects the client if it exceeds `client-output-buffer-limit`."""

    def hold(self, group: i64) -> bool:
        """Hold the output back until a group is safe. False if it waits only for output that is held already."""
        out = self.out
        self.out = []
        self.flushing = False
        for part in out:
            self.held_bytes += len(part)
        held = self.held
        if held is None:
            held = deque()
            self.held = held
        elif self.held_for >= min(self.tells_of, group):
            held[-1].extend(out)
            return False
        held.append(out)
        self.held_for = group
        return True

    def let_go(self) -> None:
        """Move the oldest held output back to `out`; does nothing if the client disconnected."""
        held = self.held
        if held is None:
            return
        out = held.popleft()
        for part in out:
            self.held_bytes -= len(part)
        self.out.extend(out)
        if not held:
            self.held = None

    def forget_output(self) -> None:
        """Drop all output: the client disconnected."""
        self.out.clear()
        self.held = None
        self.held_bytes = 0

    def reply_ok(self) -> None:
        """Reply with OK."""
        self.out.append(writer.OK)

    def reply_status(self, text: bytes) -> None:
        """Reply with a status line."""
        self.out.append(writer.status(text))

    def reply_integer(self, value: int) -> None:
        """Reply with an integer."""
        self.out.append(writer.integer(value))

    def reply_bulk(self, value: bytes) -> None:
        """Reply with a bulk string."""
        out = self.out
        out.append(writer.bulk_header(len(value)))
        out.append(value)
        out.append(writer.CRLF)

    def reply_null(self) -> None:
        """Reply with a null."""
        self.out.append(writer.NULL_BULK if self.protocol == RESP2 else writer.NULL_RESP3)

    def null_array(self) -> bytes:
        """A null array in the client's version of the protocol: nothing was found, or a wait timed out."""
        return writer.NULL_ARRAY if self.protocol == RESP2 else writer.NULL_RESP3

    def reply_null_array(self) -> None:
        """Reply with a null array."""
        self.out.append(self.null_array())

    def reply_array(self, length: int) -> None:
        """Begin an array; its elements follow."""
        self.out.append(writer.array_header(length))

    def reply_map(self, length: int) -> None:
        """Begin a map of `length` pairs; a flat array for RESP2 clients."""
        self.out.append(writer.array_header(2 * length) if self.protocol == RESP2 else b"%%%d\r\n" % length)


@mypyc_attr(acyclic=True)
class Blocked(Alarm):
    """A client whose command was not answered yet."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.open: bool = False
        """Whether a request that may follow (`Command.may_follow`) starts nevertheless."""
        self.completes: bool = False
        """Whether the reply comes soon: the connection stays open for it when the client has closed its side."""
