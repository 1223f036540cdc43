"""A client inside the process: what the console asks of the node goes the way of every client's commands.

So they are checked, counted, logged and held back for the disk like those of anybody else, and CLIENT LIST shows who
asks. The connection is that of a client over TCP, with a pipe below it that ends here.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, Transport
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from disqued.console.calling import Requests, Then
from disqued.core.runtime.authentication import ONLY_USER, authenticate
from disqued.resp.replies import Failure, Reply, read_replies
from disqued.resp.writer import request
from disqued.server.connection import Connection
from disqued.server.shell import Shell

_HUNG_UP: Final = "The node closed the connection; its log says why"


class _Pipe(Transport):
    """The lower end of the connection."""

    def __init__(self, caller: Caller) -> None:
        super().__init__()
        self._caller: Caller | None = caller

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Replies."""
        self.writelines([bytes(data)])

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Replies in parts."""
        if self._caller is not None:
            self._caller.heard(list_of_data)

    def close(self) -> None:
        """The node hangs up."""
        caller, self._caller = self._caller, None
        if caller is not None:
            caller.ended()

    def abort(self) -> None:
        """The same: there is nothing to wait for."""
        self.close()

    def cut(self) -> None:
        """Nobody listens any more."""
        self._caller = None

    def get_extra_info(self, _name: str, default: Any = None) -> Any:
        """There is no socket to tell of."""
        return default

    def get_write_buffer_size(self) -> int:
        """All is read at once."""
        return 0


class Caller:
    """Asks the node; who asked is told the replies in a later turn of the event loop."""

    def __init__(
        self, loop: AbstractEventLoop, shell: Shell, address: str, most_bytes: int, gone: Callable[[str], None]
    ) -> None:
        """Of each string in a reply `most_bytes` are kept. `gone` is told why, when the node hangs up."""
        self._loop = loop
        self._shell = shell
        self._most_bytes = most_bytes
        self._gone = gone
        self._received: list[Reply] = []
        self._asked: deque[tuple[int, Then]] = deque()
        """How many replies each who asked waits for."""
        self._pipe = _Pipe(self)
        self._connection: Connection | None = Connection(shell, 0)
        self._connection.address = address.encode()
        self._connection.connection_made(self._pipe)
        self._admitted = not self._connection.closing

    def authenticate(self, password: bytes, user: bytes = ONLY_USER) -> None:
        """What AUTH does; raises ReplyError."""
        if self._connection is not None:
            authenticate(self._shell.node.state, self._connection, password, user)

    def ask(self, requests: Requests, then: Then) -> None:
        """Have commands run, and `then` called with their replies; not if the connection ends before."""
        connection = self._connection
        if connection is not None and requests:
            self._asked.append((len(requests), then))
            connection.data_received(b"".join(map(request, requests)))

    def heard(self, parts: Iterable[bytes | bytearray | memoryview]) -> None:
        """The node replied. It is in the middle of its output, so nothing is asked of it now."""
        self._received += read_replies(parts, self._most_bytes)
        while self._admitted and self._asked and len(self._received) >= self._asked[0][0]:
            count, then = self._asked.popleft()
            replies, self._received = self._received[:count], self._received[count:]
            self._loop.call_soon(then, replies)

    def ended(self) -> None:
        """The node hung up."""
        why = next((reply.message for reply in self._received if isinstance(reply, Failure)), _HUNG_UP)
        self._loop.call_soon(self._gone, why)
        self._forget()

    def close(self) -> None:
        """Ask no more."""
        self._pipe.cut()
        self._forget()

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        self._asked.clear()
        if connection is not None:
            self._loop.call_soon(connection.connection_lost, None)
