"""One client's connection as the node sees it: its input, its replies, and what it said about itself.

A session knows no socket. Replies are appended to `out` and leave when the shell flushes the sessions that the node
names as having output; the shell's connection class derives from this one.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64, mypyc_attr

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
        """Client ID, from 1 on, set by the node."""
        self.address = address
        """As CLIENT LIST shows it: `ip:port`, `[ip]:port` or the path of a Unix socket with `:0`."""
        self.unix_socket: bool = False
        self.descriptor: i64 = -1
        self.created_ms: i64 = now_ms
        self.active_ms: i64 = now_ms
        self.parser = RequestParser()
        self.input_bytes: i64 = 0
        """Input that waits, as it is counted (`core.memory.accounting`)."""
        self.out: list[bytes] = []
        self.protocol: i64 = RESP2
        self.authenticated: bool = False
        self.name = b""
        self.library = b""
        self.library_version = b""
        self.last_command = b"NULL"
        self.blocked: Blocked | None = None
        self.flushing: bool = False
        """On the list of sessions with output."""
        self.tells_of: i64 = 0
        """The last group of changes (`Ready.logged`) that replies of this session may tell of."""
        self.held: deque[list[bytes]] | None = None
        """Output that waits for the append only file (`core.output.barrier`), one list per group that is waited for,"""
        self.held_for: i64 = 0
        """the last of these groups,"""
        self.held_bytes: i64 = 0
        """and how much it is."""
        self.monitor: bool = False
        self.reply_mode: i64 = REPLY_ON
        self.closing: bool = False
        """No more commands; the connection closes when the output is flushed."""
        self.closed: bool = False
        """The connection is gone, or goes without waiting for its output."""
        self.soft_limit_since_ms: i64 = 0
        """When the output grew beyond the soft limit; 0 while it is below."""
        self.unread_bytes: i64 = 0
        """How much output waited when memory was looked at last (`core.runtime.clientlimits`),"""
        self.stalled: bool = False
        """and whether it was no less than the time before."""
        self._counted: i64 = 0
        self._counted_bytes: i64 = 0

    def output_bytes(self) -> int:
        """Output that was not taken by the network yet."""
        return sum(map(len, self.out)) + self.unsent_bytes()

    def recount(self) -> None:
        """There may be other output: count anew."""
        self._counted = 0
        self._counted_bytes = 0

    def new_bytes(self) -> i64:
        """What is in `out`; only what was added since the last time is looked at, until `recount`."""
        out = self.out
        while self._counted < len(out):
            self._counted_bytes += len(out[self._counted])
            self._counted += 1
        return self._counted_bytes

    def unsent_bytes(self) -> int:
        """That part of it which is not in `out` any more; the shell adds what it buffers."""
        return int(self.held_bytes)

    def watch_output(self) -> None:
        """More output is held; the shell hangs up if it is more than `client-output-buffer-limit` lets wait."""

    def hold(self, group: i64) -> bool:
        """Keep the output back until a group is safe, or what is held already; False if it is only held for that."""
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
        """Output what was held first; nothing if the client is gone."""
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
        """Nobody is there to be told anything."""
        self.out.clear()
        self.held = None
        self.held_bytes = 0

    def reply_ok(self) -> None:
        """Answer OK."""
        self.out.append(writer.OK)

    def reply_status(self, text: bytes) -> None:
        """Answer with a status line."""
        self.out.append(writer.status(text))

    def reply_integer(self, value: int) -> None:
        """Answer with a number."""
        self.out.append(writer.integer(value))

    def reply_bulk(self, value: bytes) -> None:
        """Answer with a string of bytes."""
        out = self.out
        out.append(writer.bulk_header(len(value)))
        out.append(value)
        out.append(writer.CRLF)

    def reply_null(self) -> None:
        """Answer with the missing bulk."""
        self.out.append(writer.NULL_BULK if self.protocol == RESP2 else writer.NULL_RESP3)

    def null_array(self) -> bytes:
        """The missing array in the client's version of the protocol: nothing was there, or came in time."""
        return writer.NULL_ARRAY if self.protocol == RESP2 else writer.NULL_RESP3

    def reply_null_array(self) -> None:
        """Answer with the missing array."""
        self.out.append(self.null_array())

    def reply_array(self, length: int) -> None:
        """Announce an array; its elements follow."""
        self.out.append(writer.array_header(length))

    def reply_map(self, length: int) -> None:
        """Announce a map of `length` pairs: a flat array to clients of the second protocol version."""
        self.out.append(writer.array_header(2 * length) if self.protocol == RESP2 else b"%%%d\r\n" % length)


@mypyc_attr(acyclic=True)
class Blocked(Alarm):
    """A client whose command is not answered yet."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
