"""TCP ports for processes on this machine, reserved so that no two of them ever get the same one.

A reserved port is bound but not listened on, so the kernel gives it to nobody else, neither to another test run nor to
an outgoing connection. On Linux, a server that sets SO_REUSEADDR, as they all do, can still listen on it.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from typing import Final

from disqued.core.cluster.peer import BUS_PORT_DISTANCE

LOOPBACK: Final = "127.0.0.1"
HIGHEST_PORT: Final = 65535 - BUS_PORT_DISTANCE
"""The highest port for clients: the bus port of the node is BUS_PORT_DISTANCE above it."""
KEPT: Final = 200
"""How many reservations this process holds; each takes two file descriptors."""

_RESERVED: Final[deque[list[int]]] = deque()
"""The file descriptors of each reservation."""


def free_port() -> int:
    """Reserve a port for clients and the bus port above it, until this process has reserved KEPT more or ends."""
    while True:
        client, bus = socket.socket(), socket.socket()
        try:
            client.bind(("", 0))
            port: int = client.getsockname()[1]
            if port <= HIGHEST_PORT:
                bus.bind(("", port + BUS_PORT_DISTANCE))
                _keep(client, bus)
                return port
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        client.close()
        bus.close()


def _keep(*reserved: socket.socket) -> None:
    for sock in reserved:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after the bind: from now on a server may listen
    _RESERVED.append([sock.detach() for sock in reserved])
    while len(_RESERVED) > KEPT:
        for descriptor in _RESERVED.popleft():
            os.close(descriptor)


def is_free(port: int) -> bool:
    """Whether a node could listen on this port of the loopback address and on its bus port now."""
    try:
        for wanted in (port, port + BUS_PORT_DISTANCE):
            socket.create_server((LOOPBACK, wanted)).close()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True
