"""Opens the listening sockets: TCP for clients, other nodes and HTTP on all bind addresses, and a Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from disqued.config import Config
from disqued.core.cluster.peer import BUS_PORT_DISTANCE
from disqued.server.fatal import Fatal

_HIGHEST_PORT: Final = 65535 - BUS_PORT_DISTANCE
_HINTS = {
    errno.EADDRINUSE: "is another server running? Stop it, or choose another port",
    errno.EADDRNOTAVAIL: "bind to an address of this machine",
    errno.EACCES: "ports below 1024 need special rights",
}


def bus_port(config: Config) -> int:
    """The port that other nodes connect to; 0 for a node without a TCP port, which they cannot reach."""
    if config.cluster_port:
        return config.cluster_port
    port = config.port or config.tls_port
    return port + BUS_PORT_DISTANCE if port else 0


def open_sockets(config: Config) -> list[socket.socket]:
    """Open all configured sockets for clients without TLS.

    Raises:
        Fatal: a socket cannot be opened.
    """
    port = config.port or config.tls_port
    if port > _HIGHEST_PORT and not config.cluster_port:
        raise Fatal(
            f"Port {port} is too high: the cluster bus uses the port {BUS_PORT_DISTANCE} above it. "
            f"Choose one up to {_HIGHEST_PORT}, or set cluster-port."
        )
    if config.port and config.port == config.cluster_port:
        raise Fatal(f"Clients and the cluster bus cannot both use port {config.port}: change port or cluster-port.")
    if config.shared_port and config.shared_port in {config.port, bus_port(config)}:
        raise Fatal(f"Port {config.shared_port} is the client or bus port of this node: change shared-port.")
    if not config.port and not config.tls_port and not config.unixsocket:
        raise Fatal("Configured to not listen anywhere, exiting. Set port, tls-port or unixsocket.")
    with contextlib.ExitStack() as opened:
        sockets = list(map(opened.enter_context, _open_everywhere(config, config.port)))
        sockets += map(
            opened.enter_context, _open_everywhere(config, config.shared_port, " (shared-port)", shared=True)
        )
        if config.unixsocket:
            sockets.append(_open_unix(Path(config.unixsocket), config.unixsocketperm, config.tcp_backlog))
        opened.pop_all()
    return sockets


def open_tls_sockets(config: Config) -> list[socket.socket]:
    """Open the sockets for clients with TLS.

    Raises:
        Fatal: a socket cannot be opened.
    """
    if config.tls_port and config.tls_port in {config.port, config.shared_port, bus_port(config)}:
        raise Fatal(f"Port {config.tls_port} is already used by this node without TLS: change tls-port.")
    shared = config.shared_tls_port
    if shared and not config.tls_port:
        raise Fatal("shared-tls-port needs a tls-port, which belongs to this node alone: set tls-port.")
    if shared and shared in {config.port, config.tls_port, config.shared_port, bus_port(config)}:
        raise Fatal(f"Port {shared} is already used by this node: change shared-tls-port.")
    with contextlib.ExitStack() as opened:
        sockets = list(map(opened.enter_context, _open_everywhere(config, config.tls_port, " for clients with TLS")))
        sockets += map(
            opened.enter_context,
            _open_everywhere(config, shared, " for clients with TLS (shared-tls-port)", shared=True),
        )
        opened.pop_all()
    return sockets


def open_external_sockets(config: Config) -> tuple[list[socket.socket], list[socket.socket]]:
    """Open the sockets for clients outside of the network of the nodes, without and with TLS.

    Raises:
        Fatal: a socket cannot be opened.
    """
    if config.external_tls_port and not config.tls_port:
        raise Fatal("external-tls-port needs a tls-port: set it too.")
    with contextlib.ExitStack() as opened:
        plain, encrypted = (
            list(map(opened.enter_context, _open_everywhere(config, port, f" ({name})")))
            for name, port in (("external-port", config.external_port), ("external-tls-port", config.external_tls_port))
        )
        opened.pop_all()
    return plain, encrypted


def open_http_sockets(config: Config) -> list[socket.socket]:
    """Open the sockets for HTTP, on the addresses for clients.

    Raises:
        Fatal: a socket cannot be opened.
    """
    if config.http_port and config.http_port in {config.port, config.tls_port, bus_port(config)}:
        raise Fatal(f"Port {config.http_port} is already used by the client or bus port: change http-port.")
    return _open_everywhere(config, int(config.http_port), " for HTTP")  # getaddrinfo takes no subclass


def open_bus_sockets(config: Config) -> list[socket.socket]:
    """Open the sockets for other nodes, on the addresses of `cluster-bind`, otherwise on those for clients.

    Raises:
        Fatal: a socket cannot be opened.
    """
    return _open_everywhere(config, bus_port(config), " for the cluster bus", addresses=config.bus_addresses)


def _open_everywhere(
    config: Config, port: int, purpose: str = "", *, shared: bool = False, addresses: tuple[str, ...] | None = None
) -> list[socket.socket]:
    """The sockets of one port on all addresses, by default those of `bind`; none for port 0.

    Other nodes can open a `shared` port as well.
    """
    hosts = config.bind if addresses is None else addresses
    sockets: list[socket.socket] = []
    with contextlib.ExitStack() as opened:
        for host in (hosts or (None,)) if port else ():
            sockets += map(opened.enter_context, _open_tcp(host, port, config.tcp_backlog, purpose, shared=shared))
        opened.pop_all()
    return sockets


def _open_tcp(host: str | None, port: int, backlog: int, purpose: str, *, shared: bool) -> list[socket.socket]:
    """The sockets of one bind address, None for all addresses; a name or None may have both address families.

    A family that the machine lacks is skipped if the other one works. A port in use is always an error, because clients
    of the other family would reach another program.
    """
    failure = f"Can't listen on TCP port {port} of {host or 'all addresses'}{purpose}"
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:  # the name may not be valid in the domain name system
        raise Fatal(f"{failure}: {getattr(error, 'strerror', error)}.") from error
    refused: OSError | None = None
    sockets: list[socket.socket] = []
    with contextlib.ExitStack() as opened:
        for family, _, _, _, address in dict.fromkeys(found):
            try:
                sockets.append(opened.enter_context(_listen(family, address, backlog, shared=shared)))
            except OSError as error:
                refused = error
                if error.errno == errno.EADDRINUSE:
                    break
        if refused is None or (sockets and refused.errno != errno.EADDRINUSE):
            opened.pop_all()
            return sockets
    reason = os.strerror(refused.errno or 0)
    hint = _HINTS.get(refused.errno or 0)
    raise Fatal(f"{failure}: {reason}" + (f" ({hint})." if hint else ".")) from refused


def _listen(family: int, address: Any, backlog: int, *, shared: bool) -> socket.socket:
    """One listening TCP socket."""
    with contextlib.ExitStack() as opened:
        sock = opened.enter_context(socket.socket(family, socket.SOCK_STREAM))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
        sock.listen(backlog)
        opened.pop_all()
    return sock


def _open_unix(path: Path, permissions: int, backlog: int) -> socket.socket:
    """Open the Unix socket; removes what an earlier server left at its path."""
    with contextlib.ExitStack() as opened:
        sock = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        try:
            path.unlink(missing_ok=True)
            sock.bind(os.fsencode(path))
            if permissions:
                path.chmod(permissions)
            sock.listen(backlog)
        except OSError as error:
            raise Fatal(f"Can't listen on the Unix socket {path}: {error.strerror or error}") from error
        opened.pop_all()
    return sock


class Accepting(Protocol):
    """What accepts connections on listening sockets."""

    def close(self) -> None:
        """Accept no more."""


async def serve(sockets: list[socket.socket], accept: Callable[[], object], backlog: int) -> list[Accepting]:
    """Accept connections; the event loop sets the backlog of the sockets again."""
    loop = asyncio.get_running_loop()
    factory: Callable[[], asyncio.Protocol] = accept  # type: ignore[assignment]
    servers: list[Accepting] = []
    for sock in sockets:
        create = loop.create_unix_server if sock.family == socket.AF_UNIX else loop.create_server
        servers.append(await create(factory, sock=sock, backlog=backlog))
    return servers
