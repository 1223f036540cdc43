"""One run of the server, from opening the sockets to writing the last reply.

When it ends, it removes its PID file, its Unix socket and its temporary files.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import secrets
import socket
import time
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from disqued import SPOKEN_VERSION, __version__
from disqued.build import FLAVOUR
from disqued.config import Config
from disqued.config.kinds import IfFree
from disqued.console.routes import Console
from disqued.errors import ReplyError
from disqued.federation.importing import withdraw
from disqued.httpapi.serving import MORE_CONNECTIONS, Api
from disqued.httproutes import Route
from disqued.membership.nodesconf import encode, restore
from disqued.membership.secrets import SecretFileError
from disqued.metrics.server import ServerFigures
from disqued.node import Node, Rooms
from disqued.server import daemon, listener, logs, metricspage
from disqued.server.bus import Bus
from disqued.server.caller import Caller
from disqued.server.certificates import CHECK_S, Certificates
from disqued.server.connection import Connection
from disqued.server.fatal import Fatal
from disqued.server.health import ROUTES, why_not_ready
from disqued.server.host import ProcessHost
from disqued.server.httpport import MOST_CONNECTIONS, HttpPort
from disqued.server.lastdrain import drain
from disqued.server.leftovers import refuse_half_a_restore, remove_leftovers
from disqued.server.loadingline import LoadingLine
from disqued.server.looplag import LoopLag
from disqued.server.nodesfile import NodesFile
from disqued.server.restart import start_again
from disqued.server.shell import Clock, DetachedSession, Shell
from disqued.server.signals import Signals
from disqued.server.startclock import start_ms
from disqued.server.tlsport import TlsPort

_NODE_ID_BYTES: Final = 20
_TURN_S: Final = 0.01
_UNDER_WAY_S: Final = 0.3
"""Messages in transit from other nodes arrive within this time."""
_LAST_ATTEMPTS: Final = 10
_LAST_ATTEMPT_S: Final = 1.0
"""How often, and at which interval, a node that received a signal retries to flush its append-only file."""
_LAST_TURNS: Final = 100
"""How often the server checks whether clients and other nodes have read everything before it ends."""


class Run:
    """A node with its sockets, files and signals."""

    def __init__(self, config: Config, rooms: Rooms, config_path: Path | None, start_directory: str | None) -> None:
        """Open sockets and files. Without a `start_directory` the server cannot be restarted.

        Raises:
            Fatal: the server cannot start.
        """
        self._config = config
        self._rooms = rooms
        self._start_directory = start_directory
        self._restart_after_s: float | None = None
        self._ended = asyncio.Event()
        self._failure: str | None = None
        """Why the node cannot serve."""
        self._signals = Signals(self._ended)
        self._certificates = Certificates(config, logs.write)
        with contextlib.ExitStack() as leftovers:
            self._tls_sockets = listener.open_tls_sockets(config)  # first: when `port` accepts, `tls-port` does too
            self._sockets = listener.open_sockets(config)
            self._external = listener.open_external_sockets(config)
            self._bus_sockets = listener.open_bus_sockets(config)
            self._http_sockets = self._open_http()
            if config.unixsocket:
                leftovers.callback(Path(config.unixsocket).absolute().unlink, missing_ok=True)
            refuse_half_a_restore(Path.cwd())
            nodes = NodesFile(Path(config.cluster_config_file).absolute())
            leftovers.callback(nodes.close)
            remove_leftovers(Path.cwd())
            self._host = ProcessHost(config_path, nodes, self._certificates, self._ended.set, self._fail, self._restart)
            self._host.keep_alive(config.tcp_keepalive)
            if self._http_sockets:
                self._host.reserved_descriptors += self._http_connections * (2 if config.http_tls else 1)
            self._limit_clients()
            self._clock = Clock(start_ms(time.time_ns() // 1_000_000, (nodes.path, Path(config.appendfilename))))
            self._node = self._make_node(nodes)
            self._leftovers = leftovers.pop_all()
        python = platform.python_version()
        logs.write(
            "notice",
            f"Server started, Disque version {SPOKEN_VERSION} (disqued {__version__}, {FLAVOUR}, Python {python})",
        )

    def _open_http(self) -> list[socket.socket]:
        """The sockets for HTTP; none if the port is the default one and in use."""
        try:
            return listener.open_http_sockets(self._config)
        except Fatal as error:
            if not isinstance(self._config.http_port, IfFree):
                raise
            logs.write("notice", f"{error} This node serves no probes, metrics and console: set http-port.")
            self._config.http_port = 0
            return []

    def _limit_clients(self) -> None:
        """Lower `maxclients` to what the operating system allows."""
        wanted = self._config.maxclients
        possible = self._host.allow_clients(wanted)
        if possible >= wanted:
            return
        if possible < 1:
            raise Fatal("The limit on open files is too low to serve any client: raise it (ulimit -n).")
        logs.write(
            "warning",
            f"Only {possible} clients instead of {wanted} (maxclients) can be served, because of the limit on open "
            "files. Raise it (ulimit -n) to serve more.",
        )
        self._config.maxclients = possible

    def _make_node(self, nodes: NodesFile) -> Node:
        """The node described by the cluster configuration file, or a new one."""
        saved = nodes.load()
        node_id = saved.node_id if saved is not None else secrets.token_hex(_NODE_ID_BYTES).encode()
        try:
            node = Node(self._config, self._host, node_id, self._clock.now_ms(), self._rooms)
        except SecretFileError as error:
            raise Fatal(f"The server cannot start: {error}") from error
        except ReplyError as error:
            raise Fatal(f"The server cannot start: {error.text.removeprefix('ERR ')}") from error
        if saved is not None:
            restore(node.state, saved)
            logs.write("notice", f"Node configuration loaded, I'm {node_id.decode()}")
            return node
        logs.write("notice", f"No cluster configuration found, I'm {node_id.decode()}")
        try:
            nodes.save(encode(node.state.view), sync=False)
        except OSError as error:
            raise Fatal(f"Can't write the cluster config file {nodes.path}: {error.strerror}") from error
        return node

    async def serve(self, background: int | None) -> None:
        """Serve until stopped. `background` is the argument of `daemon.leave_terminal`, None in the foreground."""
        loop = asyncio.get_running_loop()
        self._signals.wake(loop)
        shell = Shell(loop, self._node, self._clock)
        self._signals.files_changed.append(shell.files_changed)
        host = self._host
        host.disk.attach(loop, shell.disk_done)
        figures = ServerFigures(lambda: why_not_ready(self._node))
        figures.certificates = self._certificates
        bus_certificates = self._certificates if self._config.tls_cluster != "no" else None
        bus = Bus(shell, loop, bus_certificates, figures.handshake_failed)
        self._signals.files_changed.append(self._certificates.renew)
        routes = (*ROUTES, *metricspage.routes(figures), *self._pages(loop, shell))
        http = HttpPort(loop, self._node, routes, figures.http_answers, self._http_connections)
        # HTTP first: when the port for clients is open, this one is too.
        servers = await self._serve_http(http, figures)
        for sockets, external in ((self._external, True), ((self._sockets, self._tls_sockets), False)):
            servers += await self._serve_clients(*sockets, partial(self._accept, shell, external=external), figures)
        lag = LoopLag(loop, figures.loop_lag)
        if self._http_sockets:
            lag.start()
            scheme = "HTTPS" if self._config.http_tls else "HTTP"
            logs.write("notice", f"Probes, metrics and the console are on port {self._config.http_port} ({scheme})")
        self._node.start(self._clock.now_ms())
        shell.start()
        if background is not None and self._failure is None:
            self._write_pid_file()
            daemon.leave_terminal(background)
        if await self._load(shell, on_terminal=background is None):
            servers += await bus.listen(self._bus_sockets, host.bus_descriptors)
            self._warn_of_open_bus()
            self._announce()
        watch = asyncio.ensure_future(self._check_certificates())
        written = await self._wait_for_end(shell)
        watch.cancel()
        lag.stop()
        for server in servers:
            server.close()
        await self._take_leave(shell, bus, http)
        if not written:
            raise Fatal("Exiting without flushing the AOF; waiting clients got no reply")
        logs.write("warning", "Disque is now ready to exit, bye bye...")

    def _pages(self, loop: asyncio.AbstractEventLoop, shell: Shell) -> tuple[Route, ...]:
        """The page for browsers, and the API."""
        callers, commands = partial(Caller, loop, shell), self._node.state.commands
        mode = self._config.http_api
        api = Api(callers, commands.items(), mode).routes if mode != "no" else ()
        return (*Console(callers, commands.items()).routes, *api)

    @property
    def _http_connections(self) -> int:
        """How many connections the HTTP port may have."""
        return MOST_CONNECTIONS + (MORE_CONNECTIONS if self._config.http_api != "no" else 0)

    async def _serve_http(self, http: HttpPort, figures: ServerFigures) -> list[listener.Accepting]:
        """Accept connections to the HTTP port."""
        if not self._config.http_tls:
            return await listener.serve(self._http_sockets, http.accept, self._http_connections)
        settings = self._certificates.http_settings
        return [
            TlsPort(
                self._http_sockets,
                settings,
                http.accept,
                lambda: self._http_connections,
                partial(self._handshake_failed, figures),
            )
        ]

    def _accept(self, shell: Shell, *, external: bool) -> Connection:
        """Return the protocol of a new connection, with the settings of this moment."""
        return Connection(shell, self._host.keep_alive_s, external=external)

    async def _serve_clients(
        self,
        plain: list[socket.socket],
        encrypted: list[socket.socket],
        accept: Callable[[], Connection],
        figures: ServerFigures,
    ) -> list[listener.Accepting]:
        """Accept connections of clients, with and without TLS."""
        servers = await listener.serve(plain, accept, self._config.tcp_backlog)
        settings = self._certificates.client_settings
        tls = TlsPort(encrypted, settings, accept, self._free_places, partial(self._handshake_failed, figures))
        return [*servers, tls]

    @staticmethod
    def _handshake_failed(figures: ServerFigures, address: str, why: str) -> None:
        """Count and log a TLS handshake that failed."""
        figures.handshake_failed()
        logs.write("verbose", f"TLS handshake failed: {address}: {why}")

    def _free_places(self) -> int:
        """How many more clients may connect."""
        return self._config.maxclients - len(self._node.state.sessions)

    async def _check_certificates(self) -> None:
        """Read the certificates again when their files change."""
        while True:
            await asyncio.sleep(CHECK_S)
            self._certificates.renew_if_changed()

    async def _load(self, shell: Shell, *, on_terminal: bool) -> bool:
        """Wait until the node has loaded its jobs; False if it must end first. Other nodes cannot reach it yet."""
        with LoadingLine(self._node, shell, shown=on_terminal):
            either = [asyncio.ensure_future(event.wait()) for event in (shell.loaded, self._ended)]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            for one in either:
                one.cancel()
        return not self._ended.is_set()

    async def _withdraw(self, shell: Shell) -> None:
        """Ask other nodes to send no more jobs, and wait for those in transit."""
        state = self._node.state
        for _ in withdraw(state):
            await asyncio.sleep(0)
        shell.settle()
        if any(peer.connected for peer in state.view.peers.values()):
            await asyncio.sleep(_UNDER_WAY_S)

    async def _wait_for_end(self, shell: Shell) -> bool:
        """Wait until the node must end; False if it could not flush its append-only file."""
        await self._ended.wait()
        if self._failure is not None:
            raise Fatal(self._failure)
        signalled = self._signals.received is not None
        if signalled:
            logs.write("warning", f"Received {self._signals.received}, shutting down...")
            await self._withdraw(shell)
            if self._config.shutdown_on_sigterm == "drain":
                await drain(shell, self._config.shutdown_drain_timeout)
        rewrite = signalled and self._config.shutdown_on_sigterm == "rewrite-aof"
        for _ in range(_LAST_ATTEMPTS):
            if await self._end(shell, rewrite=rewrite):
                return True
            await asyncio.sleep(_LAST_ATTEMPT_S)
        if rewrite:
            logs.write(
                "warning", "Exiting without a file for a controlled restart: the next start recovers as after a crash"
            )
        return self._node.end(self._clock.now_ms())

    async def _end(self, shell: Shell, *, rewrite: bool) -> bool:
        """End the node; False if it cannot write its changes now."""
        state = self._node.state
        if rewrite and not state.ending:
            self._node.end_controlled(DetachedSession(b"", self._clock.now_ms()), self._clock.now_ms())
            shell.settle()
        while state.ending:  # noqa: ASYNC110 - a node knows no events of asyncio
            await asyncio.sleep(_TURN_S)
        return state.ended if rewrite else self._node.end(self._clock.now_ms())

    def _warn_of_open_bus(self) -> None:
        """Warn if other machines can reach the bus port and nothing keeps them from acting as nodes."""
        if self._node.state.secrets or self._config.tls_cluster == "yes":
            return
        open_to = [sock.getsockname()[0] for sock in self._bus_sockets if not _is_loopback(sock)]
        if open_to:
            logs.write(
                "warning",
                f"WARNING: the bus port is open on {', '.join(open_to)}, and every program that can reach it can act "
                "as a node of the cluster. Set cluster-secret-file or tls-cluster yes, or cluster-bind to a private "
                "address.",
            )

    def _announce(self) -> None:
        """Log where other nodes and clients can connect."""
        if self._bus_sockets:
            port = listener.bus_port(self._config)
            logs.write("notice", f"Other nodes of the cluster reach this one on the bus port {port}")
        if self._config.port:
            logs.write("notice", f"The server is now ready to accept connections on port {self._config.port}")
        if self._config.tls_port:
            port = self._config.tls_port
            logs.write("notice", f"The server is now ready to accept connections with TLS on port {port}")
        if self._config.unixsocket:
            logs.write("notice", f"The server is now ready to accept connections at {self._config.unixsocket}")

    def _write_pid_file(self) -> None:
        path = Path(self._config.pidfile).absolute()
        try:
            path.write_text(f"{os.getpid()}\n")
        except OSError as error:
            logs.write("warning", f"Can't write the PID file {path}: {error.strerror}. The server runs without one.")
            return
        self._leftovers.callback(path.unlink, missing_ok=True)

    async def _take_leave(self, shell: Shell, bus: Bus, http: HttpPort) -> None:
        """Close all connections, after clients and nodes have read their last replies and frames."""
        sessions = self._node.state.sessions
        for session in sessions.values():
            session.closing = True
            self._node.ready.flush(session)
        shell.carry()
        shell.stop()
        bus.end()
        http.end()
        self._node.flush_audit()
        for _ in range(_LAST_TURNS):
            if not sessions and not bus.connected and not http.connected:
                break
            await asyncio.sleep(_TURN_S)

    def _fail(self, why: str) -> None:
        """End with exit status 1."""
        self._failure = why
        self._ended.set()

    def _restart(self, delay_ms: int, graceful: bool) -> bool:
        """Restart, after a clean shutdown if `graceful`; False if that is not possible."""
        if self._start_directory is None:
            logs.write("warning", "Can't restart: the configuration was read from standard input and is gone.")
            return False
        if not graceful:
            start_again(self._start_directory, delay_ms / 1000)
        self._restart_after_s = delay_ms / 1000
        self._ended.set()
        return True

    def close(self) -> None:
        """Remove leftovers in the file system, and restart if that was requested."""
        self._leftovers.close()
        if self._start_directory is not None and self._restart_after_s is not None:
            start_again(self._start_directory, self._restart_after_s)


def _is_loopback(sock: socket.socket) -> bool:
    """Whether only programs on this machine can reach a listening socket."""
    return ip_address(sock.getsockname()[0].partition("%")[0]).is_loopback
