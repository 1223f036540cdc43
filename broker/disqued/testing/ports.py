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
"""How many reservations this process holds; each node takes two file descriptors."""

_RESERVED: Final[deque[list[int]]] = deque()
"""The file descriptors of each reservation."""


def free_port(behind: int = 0) -> int:
    """Reserve a port for clients and the bus port above it, and those of as many nodes behind it.

    They stay reserved until this process has reserved KEPT more or ends.
    """
    while True:
        reserved = [socket.socket()]
        try:
            reserved[0].bind(("", 0))
            port: int = reserved[0].getsockname()[1]
            if port + behind <= HIGHEST_PORT:
                for wanted in (*range(port + 1, port + behind + 1), *_bus_ports(port, behind)):
                    reserved.append(socket.socket())
                    reserved[-1].bind(("", wanted))
                _keep(reserved)
                return port
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        for sock in reserved:
            sock.close()


def _bus_ports(port: int, behind: int) -> range:
    return range(port + BUS_PORT_DISTANCE, port + BUS_PORT_DISTANCE + behind + 1)


def _keep(reserved: list[socket.socket]) -> None:
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
