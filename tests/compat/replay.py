"""Replays recorded exchanges against a real node.

A `Session` is one node and the recording it is compared with. Requests are sent over raw sockets; a reply is read up to
the length of the recorded one, decoded strictly and compared. Differences are collected, so that one run reports all of
them. Closing a session checks that no connection has more output.
"""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from compat.differences import Difference, expected, read_table
from compat.normalise import Comparison, Names, asked
from compat.wire import NotRespError, Reply, decode, decode_all, request

if TYPE_CHECKING:
    from types import TracebackType

    from compat.recording import Step
    from disqued.testing.processes import ServerProcess

TIMEOUT_S = 30.0  # longer than any command of the tests waits
PAUSE_WORTH_KEEPING_MS = 100
"""Shorter gaps between recorded requests are processing time of the recorder, not waits."""


class Client:
    """A raw connection that reads whole replies."""

    def __init__(self, server: ServerProcess) -> None:
        self.socket = server.connect(TIMEOUT_S)
        self._buffer = b""
        self._ended = False

    @property
    def address(self) -> bytes:
        """The name the server knows this connection by."""
        host, port = self.socket.getsockname()[:2]
        return f"{host}:{port}".encode()

    def send(self, *words: bytes) -> None:
        """Send one multi bulk request."""
        self.socket.sendall(request(*words))

    def call(self, *words: bytes) -> Reply:
        """Send one request and wait for its reply."""
        self.send(*words)
        return self.read()

    def read(self) -> Reply:
        """The next reply; raises EOFError when the server hangs up instead, TimeoutError when it keeps silent."""
        while True:
            found = decode(self._buffer)
            if found is not None:
                reply, end = found
                self._buffer = self._buffer[end:]
                return reply
            self._buffer += self._receive()

    def rest(self) -> bytes:
        """Everything not yet read, up to the end the server makes."""
        pieces = [self._buffer]
        with contextlib.suppress(EOFError):
            while not self._ended:
                pieces.append(self._receive())
        self._buffer = b""
        return b"".join(pieces)

    def finish(self) -> bytes:
        """End the requests, and return what the server sends before it closes the connection."""
        with contextlib.suppress(OSError):  # the other side may have been faster
            self.socket.shutdown(socket.SHUT_WR)
        left = self.rest()
        self.socket.close()
        return left

    def _receive(self) -> bytes:
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:  # it hung up with input unread
            data = b""
        if not data:
            self._ended = True
            raise EOFError(f"hung up after {self._buffer[-200:]!r}")
        return data


@dataclass(slots=True)
class Session:
    """One node compared with one recording."""

    server: ServerProcess
    steps: dict[int, Step]
    rows: tuple[Difference, ...] = field(default_factory=read_table)
    names: Names = field(default_factory=Names)
    faults: list[str] = field(default_factory=list)
    played: list[int] = field(default_factory=list)
    _clients: list[Client] = field(default_factory=list)

    def client(self) -> Client:
        """A new connection, checked at the end of the session."""
        client = Client(self.server)
        self._clients.append(client)
        return client

    def play(self, client: Client, first: int, last: int | None = None) -> None:
        """Replay a range of exchanges one after the other, at the pace of the recording."""
        for number in range(first, (last or first) + 1):
            self._keep_pace(self.steps[number])
            self.ask(client, number)
            self.hear(client, number)

    def play_alone(self, first: int, last: int | None = None) -> None:
        """Replay exchanges that were recorded on a connection of their own each."""
        for number in range(first, (last or first) + 1):
            client = Client(self.server)
            self.ask(client, number)
            self.hear(client, number)
            self._end(client, self.steps[number].name)

    def ask(self, client: Client, number: int, *words: bytes) -> None:
        """Send a recorded request, its IDs replaced by ours, or `words` in its place; the answer is not awaited."""
        step = self.steps[number]
        if step.is_raw:
            client.socket.sendall(step.payload)
        else:
            client.send(*(words or map(self.names.to_ours, step.words)))

    def hear(self, client: Client, number: int) -> None:
        """Read as many replies as were recorded and compare them."""
        self.played.append(number)
        step = self.steps[number]
        wanted = decode_all(expected(step, self.rows))
        for recorded in wanted:
            try:
                ours = client.read()
            except (EOFError, TimeoutError, NotRespError) as problem:
                self.faults.append(
                    f"{step.name} {asked(step.words)}: {type(problem).__name__} {problem}, not {recorded!r:.200}"
                )
                return
            self.compare(number, recorded, ours)
        if step.closed and (more := client.rest()):
            self.faults.append(f"{step.name} {asked(step.words)}: sent {more!r:.200} before it hung up")

    def compare(self, number: int, recorded: Reply, ours: Reply) -> None:
        """Note where our reply to a recorded request is not the recorded one."""
        comparison = Comparison(self.names, self.server.port, str(self.server.directory))
        step = self.steps[number]
        self.faults += [f"{step.name} {line}" for line in comparison.differences(asked(step.words), recorded, ours)]

    def _keep_pace(self, step: Step) -> None:
        """Wait as long as the recorder did since the exchange before, which may have let something happen."""
        if step.number - 1 not in self.played[-1:]:
            return
        gap_ms = step.asked_at_ms - self.steps[step.number - 1].answered_at_ms
        if gap_ms >= PAUSE_WORTH_KEEPING_MS:
            time.sleep(gap_ms / 1000)

    def _end(self, client: Client, when: str) -> None:
        if left := client.finish():
            self.faults.append(f"{when}: a connection had more to say: {left!r:.200}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            for client in self._clients:
                client.socket.close()
            return
        for client in self._clients:
            self._end(client, "at the end")
        assert not self.faults, f"{len(self.faults)} differences\n" + "\n".join(self.faults)
