"""The brokers that are measured, and how to start one, pinned to its core.

Each runs in an empty directory, on a free port of the loopback address, in memory only unless it logs (`logging`).
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from disqued.build import FLAVOUR
from disqued.testing.certificates import Authority
from disqued.testing.ports import free_port
from disqued.testing.processes import SERVER, LocalProcess, ProcessFailedError
from machine import broker_environment

LOADED_WITHIN_S = 300.0
LOG_POLICIES = ("no", "everysec", "always")


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker of the comparison: how to start it and which protocol it speaks."""

    name: str
    protocol: str  # as the load generator calls it
    program: str
    arguments: tuple[str, ...]  # "{port}" is replaced
    package: str  # what Debian calls it
    prepare: tuple[bytes, bytes] | None = None  # a request before the load, and its reply
    tls: bool = False  # whether clients use TLS


BROKERS = (
    Broker(
        name="disqued",
        protocol="disque",
        program=SERVER[0],
        arguments=(
            *(*SERVER[1:], "--port", "{port}", "--bind", "127.0.0.1", "--loglevel", "warning"),
            *("--maxmemory", "16gb", "--maxclients", "19000"),
        ),
        package="",
    ),
    Broker(
        name="redis streams",
        protocol="stream",
        program="redis-server",
        arguments=("--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"),
        package="redis-server",
        prepare=(b"XGROUP CREATE q g 0 MKSTREAM\r\n", b"+OK\r\n"),
    ),
    Broker(
        name="redis lists",
        protocol="list",
        program="redis-server",
        arguments=("--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"),
        package="redis-server",
    ),
    Broker(
        name="beanstalkd",
        protocol="beanstalk",
        program="beanstalkd",
        arguments=("-l", "127.0.0.1", "-p", "{port}"),
        package="beanstalkd",
    ),
)


def logging(broker: Broker, policy: str) -> Broker:
    """The broker with an append-only file that is synced by `policy` and not rewritten unless the benchmark asks."""
    words = ("--appendonly", "yes", "--appendfsync", policy, "--auto-aof-rewrite-percentage", "0")
    return replace(broker, arguments=(*broker.arguments, *words))


def encrypted(broker: Broker) -> Broker:
    """The broker with TLS as the only way to connect. It needs `node.crt` and `node.key` in its directory."""
    words = [{"--port": "--tls-port"}.get(word, word) for word in broker.arguments]
    words += ["--port", "0", "--tls-cert-file", "node.crt", "--tls-key-file", "node.key", "--tls-auth-clients", "no"]
    return replace(broker, arguments=tuple(words), tls=True)


def chosen(names: list[str]) -> tuple[Broker, ...]:
    """The brokers of these names; exits with advice if one is unknown or not installed."""
    known = {broker.name: broker for broker in BROKERS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"bench: no broker is called {unknown[0]!r}; known are: {', '.join(known)}")
    missing = sorted({known[name].package for name in names if shutil.which(known[name].program) is None})
    if missing:
        raise SystemExit(
            f"bench: not installed: {', '.join(missing)}. Install with `apt-get install {' '.join(missing)}`, "
            "or measure without peers: --brokers disqued"
        )
    return tuple(known[name] for name in names)


def cores() -> tuple[int, int]:
    """The core for the broker and the core for the generator; the same one on a machine that has only one."""
    available = sorted(os.sched_getaffinity(0))
    return available[0], available[-1]


def pinned(core: int, *command: str) -> list[str]:
    """The command line that keeps a program on one core from its first instruction."""
    return ["taskset", "--cpu-list", str(core), *command]


_CPU_CLOCK = 2  # with the inverted process ID, the number of a process's CPU clock (clock_getcpuclockid)


def cpu_s(pid: int) -> float:
    """CPU time that a process has used so far, user and system."""
    return time.clock_gettime(~pid << 3 | _CPU_CLOCK)


class Running(LocalProcess):
    """A broker that accepts connections, until the context ends. Failures end the benchmark."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._directory = tempfile.TemporaryDirectory(prefix="disqued-bench-")
        if broker.tls:
            Authority(Path(self._directory.name)).issue("node")
        self._launch(free_port())

    def connect(self, timeout_s: float = 10.0) -> socket.socket:
        """A connected socket with a read timeout, with TLS if the broker requires it."""
        plain = super().connect(timeout_s)
        if not self.broker.tls:
            return plain
        try:
            return ssl._create_unverified_context().wrap_socket(plain)  # noqa: SLF001 - the broker of this process
        except BaseException:
            plain.close()
            raise

    def _launch(self, port: int) -> None:
        arguments = [argument.format(port=port) for argument in self.broker.arguments]
        command = pinned(cores()[0], self.broker.program, *arguments)  # taskset becomes the broker: one process ID
        super().__init__(command, Path(self._directory.name), port, environment=broker_environment())

    def __enter__(self) -> Self:
        try:
            self.wait_ready()
            with self.connect() as client:
                self._prepare(client)
            if self.broker.protocol == "disque" and f"build:{FLAVOUR}" not in self.ask("INFO server"):
                raise SystemExit(
                    "bench: the build of the broker changed while it was measured; run the benchmark again"
                )
        except BaseException as problem:
            self.stop()
            if isinstance(problem, ProcessFailedError):
                raise SystemExit(f"bench: {self.broker.name} does not start: {problem}") from None
            raise
        return self

    def stop(self) -> int:
        """Kill it: nothing that it holds is needed, and a clean stop would take time from the next measurement."""
        self.kill()
        self._directory.cleanup()
        return self.process.returncode

    def launch_again(self) -> None:
        """Start it again with the files it left, after `kill`. Does not wait for it."""
        self._launch(self.port)

    def restart(self) -> float:
        """Kill it and start it again with the files it left; returns the seconds until it serves requests."""
        self.kill()
        began = time.monotonic()
        self.launch_again()
        try:
            self.wait_ready()
            self.wait_until(self._has_loaded, "it loads its file", LOADED_WITHIN_S)
        except ProcessFailedError as problem:
            raise SystemExit(f"bench: {self.broker.name}: {problem}") from None
        return time.monotonic() - began

    def _has_loaded(self) -> bool:
        answer = self.ask("PING")
        if answer != "PONG" and not answer.startswith("LOADING"):
            raise SystemExit(f"bench: {self.broker.name} does not load its file: {answer}\n{self.output}")
        return answer == "PONG"

    def cpu_s(self) -> float:
        """CPU time that the process has used so far, user and system."""
        return cpu_s(self.pid)

    def file_bytes(self) -> int:
        """Size of its append-only file, or files."""
        return sum(path.stat().st_size for path in self.directory.rglob("*.aof"))

    def rss_bytes(self) -> int:
        """Memory of the process that is in RAM now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _prepare(self, client: socket.socket) -> None:
        if self.broker.prepare is None:
            return
        request, expected = self.broker.prepare
        client.sendall(request)
        reply = client.recv(1024)
        if reply != expected:
            raise SystemExit(f"bench: {self.broker.name} answered {reply!r} to {request!r}")
