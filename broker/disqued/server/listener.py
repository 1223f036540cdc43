"""Opens the sockets clients connect to: TCP on every bind address, IPv4 and IPv6, and a Unix socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

from disqued.config import Config
from disqued.server.connection import Connection


class ListenError(Exception):
    """A socket could not be opened; the text says which and why."""


def open_tcp(host: str | None, port: int, backlog: int) -> list[socket.socket]:
    """Listening sockets of one bind address; None is every address of both families."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ListenError(f"Could not resolve the bind address {host}: {error.strerror}") from error
    opened: list[socket.socket] = []
    refused: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(found):
        sock = None
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind(address)
            sock.listen(backlog)
        except OSError as error:
            if sock is not None:
                sock.close()
            refused = error
            if host is None and error.errno != 98:
                continue  # this family does not exist here
            break
        opened.append(sock)
    if refused is not None and (host is not None or not opened or refused.errno == 98):
        for sock in opened:
            sock.close()
        raise ListenError(f"Creating Server TCP listening socket {host or '*'}:{port}: {refused.strerror}") from refused
    return opened


def open_unix(path: Path, permissions: int, backlog: int) -> socket.socket:
    """The Unix socket; a file left over from an earlier server is removed."""
    try:
        path.unlink(missing_ok=True)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(str(path))
        if permissions:
            path.chmod(permissions)
        sock.listen(backlog)
    except OSError as error:
        raise ListenError(f"Opening Unix socket {path}: {error.strerror}") from error
    return sock


def open_sockets(config: Config) -> list[socket.socket]:
    """All sockets the configuration asks for; raises ListenError."""
    sockets: list[socket.socket] = []
    if config.port:
        for host in config.bind or (None,):
            sockets += open_tcp(host, config.port, config.tcp_backlog)
    if config.unixsocket:
        sockets.append(open_unix(Path(config.unixsocket), config.unixsocketperm, config.tcp_backlog))
    if not sockets:
        raise ListenError("Configured to not listen anywhere, exiting.")
    return sockets


async def serve(sockets: list[socket.socket], accept: Callable[[], Connection]) -> list[asyncio.Server]:
    """Accept clients."""
    loop = asyncio.get_running_loop()
    factory: Callable[[], asyncio.Protocol] = accept  # type: ignore[assignment]
    servers: list[asyncio.Server] = []
    for sock in sockets:
        if sock.family == socket.AF_UNIX:
            servers.append(await loop.create_unix_server(factory, sock=sock))
        else:
            servers.append(await loop.create_server(factory, sock=sock))
    return servers
