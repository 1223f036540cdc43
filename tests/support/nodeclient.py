"""Connections of tests to real nodes: blocking, to one node, without failover."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from disqued.client import ResponseError
from disqued.client.wire import Decoder, encode
from disqued.testing.ports import LOOPBACK
from disqued.testing.processes import sees_all

TIMEOUT_S: Final = 30.0
"""How long tests wait for anything; a busy machine is slow."""

Word: TypeAlias = bytes | str | int


class NodeClient:
    """A connection to one node, without failover."""

    def __init__(self, port: int, timeout_s: float = TIMEOUT_S, host: str = LOOPBACK) -> None:
        self.socket = socket.create_connection((host, port), timeout=timeout_s)
        self._decoder = Decoder()
        self._replies: deque[Any] = deque()

    def send(self, *words: Word) -> None:
        """Send a command; `read` returns its reply."""
        self.socket.sendall(encode(words))

    def read(self) -> Any:
        """The next reply.

        Raises:
            ResponseError: the reply is an error.
            EOFError: the node closed the connection.
        """
        while not self._replies:
            data = self.socket.recv(1 << 16)
            if not data:
                raise EOFError("the node closed the connection")
            self._replies += self._decoder.feed(data)
        reply = self._replies.popleft()
        if isinstance(reply, ResponseError):
            raise reply
        return reply

    def call(self, *words: Word) -> Any:
        """The reply to a command."""
        self.send(*words)
        return self.read()

    def pipeline(self, commands: Sequence[Sequence[Word]]) -> list[Any]:
        """The replies to many commands, sent at once; errors are returned, not raised."""
        self.socket.sendall(b"".join(encode(words) for words in commands))
        replies: list[Any] = []
        for _ in commands:
            try:
                replies.append(self.read())
            except ResponseError as error:
                replies.append(error)
        return replies

    def close(self) -> None:
        """Hang up."""
        self.socket.close()


class NodeAccess:
    """What tests ask a node, over a connection that is kept until it fails or `hang_up`."""

    def __init__(self, port: int, host: str = LOOPBACK) -> None:
        self.host = host
        self.port = port
        self._client: NodeClient | None = None

    def connect(self, timeout_s: float = TIMEOUT_S) -> NodeClient:
        """Open another connection; the caller closes it."""
        return NodeClient(self.port, timeout_s, self.host)

    def _kept(self) -> NodeClient:
        if self._client is None:
            self._client = self.connect()
        return self._client

    def call(self, *words: Word) -> Any:
        """The reply to a command."""
        try:
            return self._kept().call(*words)
        except (OSError, EOFError):
            self.hang_up()
            raise

    def pipeline(self, commands: Sequence[Sequence[Word]]) -> list[Any]:
        """The replies to many commands, errors included."""
        return self._kept().pipeline(commands)

    def hang_up(self) -> None:
        """Close the connection that is kept."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def sees(self, others: int) -> bool:
        """Whether it is connected to that many other nodes, and to all it knows, and suspects none."""
        return sees_all(self.call("CLUSTER", "NODES").decode(), others + 1)

    def show(self, job_id: bytes | str) -> dict[bytes, Any] | None:
        """The fields of SHOW; None when the node does not know the job."""
        flat = self.call("SHOW", job_id)
        return None if flat is None else dict(zip(flat[::2], flat[1::2], strict=True))

    def info(self, section: str = "all") -> dict[str, str]:
        """The fields of INFO."""
        lines = self.call("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)
