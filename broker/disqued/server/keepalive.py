"""TCP keep-alive: the kernel detects that the other end of an idle connection is gone."""

from __future__ import annotations

import socket
from typing import Final

LONGEST_KEEP_ALIVE_S: Final = 32767
"""The maximum that the kernel accepts: nine hours."""


def keep_alive(sock: socket.socket, interval_s: int) -> None:
    """Probe the connection after `interval_s` idle seconds, and drop it after three probes without a reply."""
    interval_s = min(interval_s, LONGEST_KEEP_ALIVE_S)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, interval_s)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(interval_s // 3, 1))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
