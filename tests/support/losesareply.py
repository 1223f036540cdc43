"""A proxy in front of a node that loses a reply, as when the node dies after it has executed a command."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self


class LosesAReply:
    """An address of a node, at which the connection breaks in place of the first reply to a command.

    So do the next `down` connections at once, as long as the node is down. Clients send no request before the reply to
    the one before is complete.
    """

    def __init__(self, command: str, port: int, down: int = 0) -> None:
        self._command = command.encode()
        self._target = port
        self._down = down
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.lost = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                downstream, _ = self._listener.accept()
                if self.lost.is_set() and self._down > 0:
                    self._down -= 1
                    downstream.close()
                    continue
                threading.Thread(target=self._forward, args=(downstream,), daemon=True).start()

    def _forward(self, downstream: socket.socket) -> None:
        with suppress(OSError), downstream, socket.create_connection(("127.0.0.1", self._target)) as upstream:
            while data := downstream.recv(1 << 20):
                upstream.sendall(data)
                reply = upstream.recv(1 << 20)
                if self._command in data and not self.lost.is_set():
                    self.lost.set()
                    return
                if not reply:
                    return
                downstream.sendall(reply)
