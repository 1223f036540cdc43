"""Proxies in front of a node, which change what a client hears from it."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self

CHUNK_BYTES = 1 << 20


class Proxy:
    """An address of a node. A subclass forwards the connections of clients."""

    def __init__(self, target: int) -> None:
        """`target` is the port of the node."""
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"

    def forward(self, downstream: socket.socket) -> None:
        """Forward one connection, in a thread of its own, until it ends."""
        raise NotImplementedError

    def connect(self) -> socket.socket:
        """Connect to the node."""
        return socket.create_connection(("127.0.0.1", self._target))

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                downstream, _ = self._listener.accept()
                threading.Thread(target=self._run, args=(downstream,), daemon=True).start()

    def _run(self, downstream: socket.socket) -> None:
        with suppress(OSError), downstream:
            self.forward(downstream)


class LosesAReply(Proxy):
    """The connection breaks in place of the first reply to a command, as when the node dies after it has executed it.

    So do the next `down` connections at once, as long as the node is down. Clients send no request before the reply to
    the one before is complete.
    """

    def __init__(self, command: str, target: int, down: int = 0) -> None:
        super().__init__(target)
        self._command = command.encode()
        self._down = down
        self.lost = threading.Event()

    def forward(self, downstream: socket.socket) -> None:
        """Forward requests and replies in turn."""
        if self.lost.is_set() and self._down > 0:
            self._down -= 1
            return
        with self.connect() as upstream:
            while data := downstream.recv(CHUNK_BYTES):
                upstream.sendall(data)
                reply = upstream.recv(CHUNK_BYTES)
                if self._command in data and not self.lost.is_set():
                    self.lost.set()
                    return
                if not reply:
                    return
                downstream.sendall(reply)
