"""`disque-server --nodes N`: several nodes on one machine behind one port, because one node uses one core.

Each node is a `disque-server` of its own: node 1 has the port after the shared one, the directory `node-1`, and so on.
All of them also accept clients on the shared port, among which the kernel distributes connections. The same holds for
`tls-port`, beside `port` or with `port 0`. The nodes find each other with `cluster-seeds`. This process starts them,
prints their log lines with the name of the node, starts a node again that died, and passes SIGTERM and SIGINT on.

The configuration reaches the nodes through their standard input: they share its text, so none may rewrite the file.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from disqued.config import Config
from disqued.core.cluster.peer import BUS_PORT_DISTANCE
from disqued.server import logs
from disqued.server.fatal import Fatal

MOST_NODES: Final = 64
_FIRST_START_S: Final = 5.0
"""A node that fails within this time of its first start cannot start: all nodes are stopped."""
_RESTART_S: Final = 1.0
"""The pause before a node is started again."""
_LONGEST_LINE: Final = 1 << 20
_ANY_ADDRESS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound
_PR_SET_PDEATHSIG: Final = 1
_HIGHEST_PORT: Final = 65535

_SHARED_FILES: Final = (
    "cluster_secret_file",
    "requirepass_file",
    "tls_cert_file",
    "tls_key_file",
    "tls_ca_cert_file",
)
"""Files that all nodes read: their paths are relative to the directory above those of the nodes."""
_NOT_SHARED: Final = (
    "unixsocket",
    "cluster_port",
    "cluster_announce_port",
    "cluster_announce_bus_port",
    "shared_port",
    "shared_tls_port",
    "cluster_announce_tls_port",
    "daemonize",
)
"""Directives that would give all nodes the same address, or hide this process from its supervisor."""
_OWN_FILES: Final = ("logfile", "cluster_config_file")
"""Files that each node needs in its own directory."""


@dataclass(frozen=True, slots=True)
class LocalNode:
    """One of the nodes: its name, and the directives that differ from those of the other nodes."""

    name: str
    directives: tuple[str, ...]


def plan(config: Config, count: int) -> list[LocalNode]:
    """Return the nodes that share `config.port` and `config.tls_port`.

    Raises:
        Fatal: the configuration does not suit several nodes.
    """
    _check(config, count)
    first = config.port or config.tls_port
    host = config.cluster_announce_ip or next(
        (at for at in config.bus_addresses if at not in _ANY_ADDRESS), "127.0.0.1"
    )
    address = f"[{host}]" if ":" in host else host
    seeds = [f"{address}:{first + number}" for number in range(1, count + 1)]
    shared = [
        (f"--{_directive(attribute)}", str(Path(config.dir, getattr(config, attribute)).absolute()))
        for attribute in _SHARED_FILES
        if getattr(config, attribute)
    ]
    memory = config.maxmemory
    limit = f"{max(memory.percent // count, 1)}%" if memory.percent else str(max(memory.size_bytes // count, 1))
    return [
        LocalNode(
            f"node-{number}",
            (
                *("--dir", f"node-{number}"),
                *("--port", _behind(config.port, number), "--shared-port", str(config.port)),
                *("--tls-port", _behind(config.tls_port, number), "--shared-tls-port", str(config.tls_port)),
                *("--http-port", _behind(config.http_port, number)),
                *("--maxmemory", limit),
                *(word for pair in shared for word in pair),
                *("--cluster-seeds", *(seed for seed in seeds if seed != seeds[number - 1]), *config.cluster_seeds),
            ),
        )
        for number in range(1, count + 1)
    ]


def _behind(port: int, number: int) -> str:
    """The port of a node behind the shared one; 0 if there is none."""
    return str(port + number if port else 0)


def _check(config: Config, count: int) -> None:
    """Refuse what several nodes cannot have."""
    if not 2 <= count <= MOST_NODES:
        raise Fatal(f"--nodes needs a number from 2 to {MOST_NODES}")
    if not hasattr(socket, "SO_REUSEPORT"):
        raise Fatal("--nodes needs an operating system with SO_REUSEPORT, such as Linux")
    _check_port("port", config.port or config.tls_port, _HIGHEST_PORT - BUS_PORT_DISTANCE - count)
    if config.tls_port:
        _check_port("tls-port", config.tls_port, _HIGHEST_PORT - count)
    if config.port and config.tls_port and abs(config.port - config.tls_port) <= count:
        raise Fatal(
            f"--nodes needs a port and a tls-port that differ by more than {count}: the nodes have the ports after each"
        )
    for attribute in _NOT_SHARED:
        if getattr(config, attribute):
            raise Fatal(f"--nodes cannot be combined with {_directive(attribute)}")
    for attribute in _OWN_FILES:
        if Path(getattr(config, attribute)).is_absolute():
            raise Fatal(f"--nodes needs a relative path for {_directive(attribute)}: each node has its own directory")


def _check_port(name: str, port: int, highest: int) -> None:
    if not 1 <= port <= highest:
        raise Fatal(f"--nodes needs a {name} from 1 to {highest}: the nodes have the ports after it")


def _directive(attribute: str) -> str:
    return attribute.replace("_", "-")


class SeveralNodes:
    """The processes of the nodes. `program` starts a server; `text` is the configuration that they share."""

    def __init__(self, program: Sequence[str], text: bytes, nodes: Sequence[LocalNode]) -> None:
        self._program = program
        self._text = text
        self._nodes = nodes
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self._failed = False

    async def run(self) -> int:
        """Run all nodes until each was stopped; returns the exit status."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        await asyncio.gather(*map(self._keep_running, self._nodes))
        return int(self._failed)

    def _stop(self) -> None:
        self._stopping.set()
        for process in self._running.values():
            _terminate(process)

    async def _keep_running(self, node: LocalNode) -> None:
        """Run a node, and start it again when it dies, until it ends with status 0 or all are stopped."""
        first_s = asyncio.get_running_loop().time()
        while not self._stopping.is_set():
            status = await self._run_once(node)
            if status == 0 or self._stopping.is_set():
                self._failed |= status > 0
                return
            if status > 0 and asyncio.get_running_loop().time() < first_s + _FIRST_START_S:
                logs.write("warning", f"{node.name} cannot start: stopping the other nodes")
                self._failed = True
                self._stop()
                return
            how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
            logs.write("warning", f"{node.name} {how}, starting it again")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RESTART_S):
                    await self._stopping.wait()

    async def _run_once(self, node: LocalNode) -> int:
        """Run a node to its end; returns its exit status, negative for a signal."""
        process = await asyncio.create_subprocess_exec(
            *self._program,
            "-",
            *node.directives,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=_LONGEST_LINE,
            preexec_fn=_end_with_parent,
        )
        self._running[node.name] = process
        if self._stopping.is_set():  # the signal came while it was started
            _terminate(process)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(self._text)
        process.stdin.close()
        async for line in process.stdout:
            sys.stdout.buffer.write(b"%b %b" % (node.name.encode(), line))
            sys.stdout.buffer.flush()
        status = await process.wait()
        del self._running[node.name]
        return status


def _terminate(process: asyncio.subprocess.Process) -> None:
    """Send SIGTERM to a node. `send_signal` would take the exit status of one that has just ended away from asyncio."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGTERM)


def _end_with_parent() -> None:
    """Let the kernel stop this node when the process that started it dies without stopping it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def serve(config: Config, text: str, lines: Sequence[str], count: int, arguments: int) -> int:
    """Run the nodes until they are stopped; returns the exit status.

    `text` and `lines` are the configuration of the file and of the command line, whose words are the last `arguments`
    of this process.

    Raises:
        Fatal: the configuration does not suit several nodes, or a directory cannot be created.
    """
    nodes = plan(config, count)
    for node in nodes:
        path = Path(config.dir, node.name)
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise Fatal(f"Can't create the directory {path}: {error.strerror}") from error
    program = (sys.executable, *sys.orig_argv[1 : len(sys.orig_argv) - arguments])
    logs.configure(config.loglevel, "")
    shared_ports = [str(config.port)] if config.port else []
    shared_ports += [f"{config.tls_port} with TLS"] if config.tls_port else []
    where = " and ".join(shared_ports)
    logs.write("notice", f"{count} nodes accept clients on port {where}, and each on its own port after it")
    shared = "\n".join([text, *lines]).encode("utf-8", "surrogateescape")
    return asyncio.run(SeveralNodes(program, shared, nodes).run())
