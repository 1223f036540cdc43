"""`disque-server`: reads the configuration, opens the sockets, runs one node until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import platform
import secrets
import signal
import sys
import time
from pathlib import Path

from disqued import __version__
from disqued.build import FLAVOUR
from disqued.config import Config, ConfigError, ServerArguments, fatal_text, load, parse_arguments
from disqued.membership.nodesconf import decode, encode
from disqued.node import COMMANDS, Node
from disqued.server import daemon, logs, nodesfile
from disqued.server.connection import Connection
from disqued.server.host import ProcessHost, read_text
from disqued.server.listener import ListenError, open_sockets, serve
from disqued.server.shell import Clock, Shell

try:
    from uvloop import new_event_loop
except ImportError:  # other implementations of Python run on asyncio's own loop
    from asyncio import new_event_loop  # type: ignore[assignment]

USAGE = """Usage: disque-server [config-file | -] [--directive value...]...
       disque-server -v | --version
       disque-server -h | --help
       disque-server --test-memory <megabytes>

Examples:
       disque-server                                  (defaults, port 7711)
       disque-server /etc/disque/disque.conf
       disque-server --port 7777 --maxmemory 2gb
       disque-server /etc/disque.conf --loglevel verbose
       echo 'maxmemory 128mb' | disque-server -
"""


class Fatal(Exception):
    """The server can not start or go on; the text is logged and the exit status is 1."""


def read_configuration(arguments: ServerArguments) -> Config:
    """The configuration of file, standard input and command line; raises Fatal or ConfigError."""
    text = ""
    if arguments.config_path == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    elif arguments.config_path is not None:
        try:
            text = read_text(Path(arguments.config_path))
        except OSError as error:
            raise Fatal(f"Fatal error, can't open config file '{arguments.config_path}': {error.strerror}") from error
    names = [command.name.encode() for command in COMMANDS]
    return load(text, arguments.lines, lambda path: read_text(Path(path)), names)


def load_identity(path: Path) -> tuple[bytes, bool]:
    """This node's ID and whether it is leaving, from the cluster configuration file; a new ID when it is empty."""
    text = path.read_text()
    if not text.strip():
        return secrets.token_hex(20).encode(), False
    try:
        return decode(text)
    except ValueError as error:
        raise Fatal(f"Unrecoverable error: corrupted cluster config file {path}: {error}") from error


class Server:
    """One run of the server."""

    def __init__(self, config: Config, config_path: Path | None) -> None:
        self._config = config
        self._status: asyncio.Future[int] | None = None
        nodes_path = Path(config.cluster_config_file).absolute()
        self._host = ProcessHost(config_path, nodes_path, self.end)
        self._host.on_restart(self._restart)
        self._host.keep_alive(config.tcp_keepalive)
        self._restart_with: float | None = None
        self._limit_clients()
        self._sockets = open_sockets(config)
        self._lock = nodesfile.lock(nodes_path)
        node_id, leaving = load_identity(nodes_path)
        self._clock = Clock(time.time_ns() // 1_000_000)
        self._node = Node(config, self._host, node_id, self._clock.now_ms())
        self._node.state.view.leaving = leaving
        if nodes_path.stat().st_size == 0:
            logs.write("notice", f"No cluster configuration found, I'm {node_id.decode()}")
            self._host.save_nodes(encode(self._node.state.view), sync=False)
        else:
            logs.write("notice", f"Node configuration loaded, I'm {node_id.decode()}")

    def _limit_clients(self) -> None:
        """Lower `maxclients` to what the operating system allows."""
        possible = self._host.allow_clients(self._config.maxclients)
        if possible < self._config.maxclients:
            if possible < 1:
                raise Fatal("The limit on open files is too low to serve any client: raise it (ulimit -n).")
            logs.write(
                "warning",
                f"maxclients has been reduced to {possible} to compensate for the low limit on open files. "
                "Raise the limit (ulimit -n) to serve more.",
            )
            self._config.maxclients = possible

    def end(self, status: int) -> None:
        """Stop serving."""
        if self._status is not None and not self._status.done():
            self._status.set_result(status)

    def _restart(self, delay_ms: int, graceful: bool) -> bool:
        """Start anew with the same command line, after a clean end if `graceful`."""
        if self._status is None:
            return False
        self._restart_with = delay_ms / 1000
        if graceful:
            self.end(0)
        else:
            _execute(self._restart_with)
        return True

    def _signalled(self, name: str) -> None:
        logs.write("warning", f"Received {name} scheduling shutdown...")
        self.end(0)

    async def run(self) -> int:
        """Serve until told to stop; returns the exit status."""
        loop = asyncio.get_running_loop()
        self._status = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number.name)
        shell = Shell(loop, self._node, self._clock)
        host = self._host
        servers = await serve(self._sockets, lambda: Connection(shell, host.keep_alive_s))
        shell.start()
        if self._config.port:
            logs.write("notice", f"The server is now ready to accept connections on port {self._config.port}")
        if self._config.unixsocket:
            logs.write("notice", f"The server is now ready to accept connections at {self._config.unixsocket}")
        status = await self._status
        for server in servers:
            server.close()
        for session in list(self._node.state.sessions.values()):
            session.closing = True
            self._node.ready.flush(session)
        shell.settle()
        shell.stop()
        await asyncio.sleep(0)
        logs.write("warning", "Disque is now ready to exit, bye bye...")
        return status

    def close(self) -> None:
        """Remove what was left in the file system, then start anew if that was asked for."""
        if self._config.unixsocket:
            Path(self._config.unixsocket).unlink(missing_ok=True)
        if self._config.daemonize:
            Path(self._config.pidfile).unlink(missing_ok=True)
        os.close(self._lock)
        if self._restart_with is not None:
            _execute(self._restart_with)


def _execute(delay_s: float) -> None:
    """Become a new server with the same command line and process ID."""
    time.sleep(delay_s)
    os.execv(sys.executable, [sys.executable, "-m", "disqued.server", *sys.argv[1:]])  # noqa: S606 - our own command


def version_line() -> str:
    """What `--version` prints."""
    return f"Disque server v=1.0-rc1 disqued={__version__} python={platform.python_version()} build={FLAVOUR}"


def memory_test(megabytes: int | None) -> int:
    """Write patterns to that much memory and read them back; returns the exit status."""
    if megabytes is None:
        sys.stderr.write("Please specify the amount of memory to test in megabytes: --test-memory 4096\n")
        return 1
    for pattern in (0x00, 0xFF, 0x55, 0xAA):
        block = bytes((pattern,)) * (megabytes << 20)
        if block.count(pattern) != len(block):
            sys.stderr.write(
                f"Memory does not keep the pattern {pattern:#04x}: replace it before you trust this machine.\n"
            )
            return 1
    print(f"{megabytes} MB of memory kept every pattern.")  # noqa: T201 - the result of the test
    return 0


def start(arguments: ServerArguments) -> int:
    """Configure and serve; returns the exit status."""
    config = read_configuration(arguments)
    config_path = arguments.config_path
    absolute = Path(config_path).absolute() if config_path is not None and config_path != "-" else None
    if config.dir:
        try:
            os.chdir(config.dir)
        except OSError as error:
            raise Fatal(f"Can't chdir to '{config.dir}': {error.strerror}") from error
    if config.daemonize:
        daemon.detach()
    syslog = (config.syslog_ident, config.syslog_facility) if config.syslog_enabled else None
    try:
        logs.configure(config.loglevel, config.logfile, syslog)
    except OSError as error:
        raise Fatal(f"Can't open the log file '{config.logfile}': {error.strerror}") from error
    if config.daemonize:
        with contextlib.suppress(OSError):
            daemon.write_pid_file(Path(config.pidfile))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if config_path is None and not arguments.lines:
        logs.write("warning", "Warning: no config file specified, using the default config.")
    server = Server(config, absolute)
    logs.write("notice", f"Server started, Disque version 1.0-rc1, {version_line()}")
    # Jobs make no reference cycles, and a collection would stop the node for longer the more it holds.
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(server.run())
    finally:
        server.close()


def main() -> None:
    """The command `disque-server`."""
    arguments = parse_arguments(sys.argv[1:])
    if arguments.action == "version":
        print(version_line())  # noqa: T201 - the answer to --version
        sys.exit(0)
    if arguments.action == "help":
        sys.stderr.write(USAGE)
        sys.exit(1)
    if arguments.action == "test-memory":
        sys.exit(memory_test(arguments.test_megabytes))
    try:
        sys.exit(start(arguments))
    except ConfigError as error:
        sys.stderr.write(fatal_text(error))
    except (Fatal, ListenError, nodesfile.NodesFileError) as error:
        if logs.configured():
            logs.write("warning", str(error))
        else:
            sys.stderr.write(f"{error}\n")
    sys.exit(1)
