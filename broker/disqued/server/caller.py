"""A client inside the process: commands of the console are executed like those of every client.

They are checked, counted, logged and held by the durability barrier like all others, and CLIENT LIST shows the client.
Its connection is that of a TCP client, on top of an in-process pipe.
"""

from __future__ import annotations

import contextlib
from asyncio import AbstractEventLoop, Transport
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from disqued.console.calling import Cancel, Requests, Then
from disqued.core.runtime.authentication import authenticate
from disqued.queries.room import Asker, queries_of
from disqued.resp.replies import Failure, Reply, ReplyFormatError, read_replies
from disqued.resp.writer import request
from disqued.server.connection import Connection
from disqued.server.shell import Shell

_HUNG_UP: Final = "The node closed the connection; its log says why"


class _Pipe(Transport):
    """The transport of the connection."""

    def __init__(self, caller: Caller) -> None:
        super().__init__()
        self._caller: Caller | None = caller

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Receive replies."""
        self.writelines([bytes(data)])

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Receive replies in parts."""
        if self._caller is not None:
            self._caller.received(list_of_data)

    def close(self) -> None:
        """The node closes the connection."""
        caller, self._caller = self._caller, None
        if caller is not None:
            caller.ended()

    def abort(self) -> None:
        """The same as `close`: no output waits."""
        self.close()

    def is_closing(self) -> bool:
        """Whether the connection has ended."""
        return self._caller is None

    def pause_reading(self) -> None:
        """Nothing: all requests have arrived."""

    def resume_reading(self) -> None:
        """Nothing."""

    def cut(self) -> None:
        """Drop further replies."""
        self._caller = None

    def get_extra_info(self, _name: str, default: Any = None) -> Any:
        """Always the default: there is no socket."""
        return default

    def get_write_buffer_size(self) -> int:
        """Always 0: replies are read at once."""
        return 0


class Caller:
    """Sends commands to the node; replies arrive in a later turn of the event loop."""

    def __init__(
        self, loop: AbstractEventLoop, shell: Shell, address: str, most_bytes: int, gone: Callable[[str], None]
    ) -> None:
        """Keep `most_bytes` of each string in a reply. `gone` is called with the reason when the node closes."""
        self._loop = loop
        self._shell = shell
        self._most_bytes = most_bytes
        self._gone = gone
        self._unread: list[bytes | bytearray | memoryview] = []
        """Output of the node with a reply that is not complete: a long command writes its reply in slices."""
        self._received: list[Reply] = []
        self._asked: deque[tuple[int, Then]] = deque()
        """How many replies each request waits for."""
        self._pipe = _Pipe(self)
        self._connection: Connection | None = Connection(shell, 0)
        self._connection.address = address.encode()
        self._connection.connection_made(self._pipe)
        self._connection.tls = shell.node.state.config.http_tls
        self._admitted = not self._connection.closing

    def authenticate(self, password: bytes, user: bytes | None = None) -> None:
        """Authenticate as AUTH does.

        Raises:
            ReplyError: the password or the user is wrong.
        """
        if self._connection is not None:
            authenticate(self._shell.node.state, self._connection, password, user)

    def ask(self, requests: Requests, then: Then) -> None:
        """Run commands, then call `then` with their replies, unless the connection ends first."""
        connection = self._connection
        if connection is not None and requests:
            self._asked.append((len(requests), then))
            connection.data_received(b"".join(map(request, requests)))

    def ask_member(self, member: bytes, requests: Requests, then: Then) -> Cancel | None:
        """Have another member run commands for the user of this caller, then call `then` with their replies.

        Returns a function that cancels that; None if the member cannot be asked now.
        """
        connection, state = self._connection, self._shell.node.state
        peer = state.view.peers.get(member)
        if connection is None or connection.user is None or peer is None:
            return None
        asker = Asker(connection.user.name, logged_in=bool(connection.login))
        queries = queries_of(state)
        number = queries.ask(peer, asker, requests, lambda data: self._answered(data, then))
        if number == 0:
            return None
        self._shell.settle()
        return partial(queries.forget, number)

    def _answered(self, data: bytes, then: Then) -> None:
        """A member answered. What is not a list of replies is the same as no answer."""
        with contextlib.suppress(EOFError, ReplyFormatError):
            self._loop.call_soon(then, read_replies([data], self._most_bytes))

    def received(self, parts: Iterable[bytes | bytearray | memoryview]) -> None:
        """Take replies. The node is writing its output, so `then` is called in a later turn."""
        self._unread += parts
        try:
            self._received += read_replies(self._unread, self._most_bytes)
        except EOFError:
            return  # the rest follows
        self._unread.clear()
        while self._admitted and self._asked and len(self._received) >= self._asked[0][0]:
            count, then = self._asked.popleft()
            replies, self._received = self._received[:count], self._received[count:]
            self._loop.call_soon(then, replies)

    def ended(self) -> None:
        """Report that the node closed the connection."""
        why = next((reply.message for reply in self._received if isinstance(reply, Failure)), _HUNG_UP)
        self._loop.call_soon(self._gone, why)
        self._forget()

    @property
    def waits(self) -> bool:
        """Whether the node has a command of this client that waits, and whose reply has not begun."""
        return self._connection is not None and self._connection.blocked is not None

    def close(self) -> None:
        """Close the connection in a later turn: this may be called while the node runs."""
        self._pipe.cut()
        self._forget()

    def abandon(self) -> None:
        """Close the connection in this turn, so that a command that waits gets nothing."""
        self._pipe.cut()
        self._asked.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.connection_lost(None)

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        self._asked.clear()
        if connection is not None:
            self._loop.call_soon(connection.connection_lost, None)
