"""The brokers that are measured, and how one of them is started fresh, pinned and ready.

Each runs in an empty directory, on a free port of the loopback, in memory only unless it is told to log (`logging`).
They are killed, not stopped: nothing they hold is wanted, and a clean stop would take time from the measurement of the
next one.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from machine import broker_environment, check_flavour

READY_WITHIN_S = 30.0
LOADED_WITHIN_S = 300.0
LOG_POLICIES = ("no", "everysec", "always")
BUS_PORT_OFFSET = 10_000  # the broker takes this port too


@dataclass(frozen=True, slots=True)
class Broker:
    """One line of the comparison: how to start it and how to talk to it."""

    name: str
    protocol: str  # as the load generator calls it
    program: str
    arguments: tuple[str, ...]  # "{port}" is replaced
    package: str  # what Debian calls it
    prepare: tuple[bytes, bytes] | None = None  # a request before the load, and its reply


BROKERS = (
    Broker(
        name="disqued",
        protocol="disque",
        program=sys.executable,
        arguments=(
            *("-m", "disqued.server", "--port", "{port}", "--bind", "127.0.0.1", "--loglevel", "warning"),
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
    """The broker with an append only file that is synced as `policy` says, and never written anew unasked."""
    words = ("--appendonly", "yes", "--appendfsync", policy, "--auto-aof-rewrite-percentage", "0")
    return replace(broker, arguments=(*broker.arguments, *words))


def chosen(names: list[str]) -> tuple[Broker, ...]:
    """The brokers of these names; exits with what to do when one is unknown or not installed."""
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


def free_port(above: int = 17_699) -> int:
    """A port below the ephemeral range whose bus port is free as well; the next one after `above`."""
    for port in range(above + 1, 22_700):
        try:
            for wanted in (port, port + BUS_PORT_OFFSET):
                with socket.create_server(("127.0.0.1", wanted)):
                    pass
        except OSError:
            continue
        return port
    raise SystemExit("bench: no free port between 17700 and 22700")


class Running:
    """A broker that accepts connections, until the context ends."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.port = free_port()
        self._directory = tempfile.TemporaryDirectory(prefix="disqued-bench-")
        self._log = Path(self._directory.name) / "log"
        self._process = self._launch()

    @property
    def pid(self) -> int:
        """Of the broker: taskset becomes it."""
        return self._process.pid

    def _launch(self) -> subprocess.Popen[bytes]:
        command = [argument.format(port=self.port) for argument in self.broker.arguments]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                pinned(cores()[0], self.broker.program, *command),
                cwd=self._directory.name,
                env=broker_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def __enter__(self) -> Self:
        try:
            with self._connect() as client:
                self._prepare(client)
            if self.broker.protocol == "disque":
                check_flavour(self.pid)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._directory.cleanup()

    def restart(self) -> float:
        """Kill it and start it again with the files it left; returns the seconds until it serves requests."""
        self._process.kill()
        self._process.wait()
        began = time.monotonic()
        self._process = self._launch()
        self._connect().close()
        while (answer := self.ask("PING")) != "PONG":
            if not answer.startswith("LOADING") or time.monotonic() - began > LOADED_WITHIN_S:
                raise SystemExit(f"bench: {self.broker.name} does not load its file: {answer}\n{self.log()}")
            time.sleep(0.02)
        return time.monotonic() - began

    def ask(self, request: str) -> str:
        """Send one inline command of a broker that speaks as Redis does; returns its reply: a line or a bulk string."""
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=60) as client,
            client.makefile("rb") as replies,
        ):
            client.sendall(request.encode() + b"\r\n")
            head: bytes = replies.readline()
            found: bytes = replies.read(int(head[1:])) if head.startswith(b"$") else head[1:].rstrip()
        return found.decode()

    def cpu_s(self) -> float:
        """CPU time that the process took so far, user and system."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def file_bytes(self) -> int:
        """Size of its append only file, or files."""
        return sum(path.stat().st_size for path in Path(self._directory.name).rglob("*.aof"))

    def rss_bytes(self) -> int:
        """Memory of the process that is in RAM now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def log(self) -> str:
        """What the broker printed."""
        return self._log.read_text(errors="replace")

    def _connect(self) -> socket.socket:
        deadline = time.monotonic() + READY_WITHIN_S
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), timeout=5)
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"bench: {self.broker.name} does not start:\n{self.log()}") from None
                time.sleep(0.02)

    def _prepare(self, client: socket.socket) -> None:
        if self.broker.prepare is None:
            return
        request, expected = self.broker.prepare
        client.sendall(request)
        reply = client.recv(1024)
        if reply != expected:
            raise SystemExit(f"bench: {self.broker.name} answered {reply!r} to {request!r}")
