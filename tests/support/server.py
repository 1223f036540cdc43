"""A real broker process on a free port, for tests that need sockets."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

LOOPBACK: Final = "127.0.0.1"
FIRST_PORT: Final = 12000
PORTS: Final = 10000
BUS_PORT_DISTANCE: Final = 10000
"""Ports the kernel gives to no outgoing connection; those of the bus, right above, overlap with none for clients."""


SHARES: Final = 8
"""Processes of pytest-xdist take their ports from a share each."""


def _ports() -> Iterator[int]:
    """The ports of this process, round and round, from some point on: no two servers are given the same one."""
    share = PORTS // SHARES
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % SHARES
    at = random.SystemRandom().randrange(share)
    while True:
        at = (at + 1) % share
        yield FIRST_PORT + number * share + at


PORTS_TO_GIVE: Final = _ports()


def free_port(host: str = LOOPBACK) -> int:
    """A TCP port nobody listens on, nor on its bus port, and that was given to nobody lately."""
    while True:
        port = next(PORTS_TO_GIVE)
        with socket.socket() as probe, socket.socket() as bus_probe, contextlib.suppress(OSError):
            probe.bind((host, port))
            bus_probe.bind((host, port + BUS_PORT_DISTANCE))
            return port


COMMAND: Final = (sys.executable, "-m", "disqued.server")
"""`disque-server` of the build under test."""


class ServerProcess:
    """`disque-server` in its own directory; stopped and reaped when the context ends.

    It gets a free `port` at `at`, the loopback address unless said otherwise. When it is `bare`, `arguments` and
    `config` say everything, and `at` is only where `connect` goes: an address, or the path of a Unix socket. `launcher`
    is a command that starts others, as `prlimit` does.
    """

    def __init__(
        self,
        directory: Path,
        *arguments: str,
        port: int | None = None,
        config: str | None = None,
        stdin: bytes = b"",
        at: str = LOOPBACK,
        launcher: Sequence[str] = (),
        bare: bool = False,
    ) -> None:
        self.directory = directory
        self.port = port if port is not None else free_port()
        self.at = at
        self.log = directory / "server.log"
        command = [*launcher, *COMMAND]
        if config is not None:
            path = directory / "disque.conf"
            path.write_text(config)
            command.append(str(path))
        if not bare:
            command += ["--port", str(self.port), "--bind", LOOPBACK if "/" in at else at, "--http-port", "0"]
        command += arguments
        asked = "--http-port" in arguments
        self._http_port = int(arguments[arguments.index("--http-port") + 1]) if asked else 0
        with self.log.open("ab") as log, tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            self.process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log, stdin=given)

    def connect(self, timeout_s: float = 10.0) -> socket.socket:
        """A connected socket with a read timeout."""
        if "/" not in self.at:
            return socket.create_connection((self.at, self.port), timeout=timeout_s)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout_s)
            connection.connect(self.at)
        except OSError:
            connection.close()
            raise
        return connection

    def wait_ready(self, timeout_s: float = 20.0) -> None:
        """Return when the server accepts connections of clients, and on the port for HTTP that `arguments` ask for.

        The rest of its start, with the last lines of its log, is over when it has answered a command. Raises with its
        log when it ends first.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"server ended with {self.process.returncode}:\n{self.log.read_text()}")
            with contextlib.suppress(OSError):
                self.connect().close()
                if self._http_port:
                    socket.create_connection((LOOPBACK if "/" in self.at else self.at, self._http_port)).close()
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"server does not accept connections:\n{self.log.read_text()}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)

    def wait_loaded(self, timeout_s: float = 20.0) -> None:
        """Return when the server has its jobs; raise with its log when it ends first."""
        self.wait_ready(timeout_s)
        deadline = time.monotonic() + timeout_s
        while b"LOADING" in self._ping():
            if time.monotonic() > deadline:
                raise TimeoutError(f"server does not end to load:\n{self.log.read_text()}")
            time.sleep(0.01)

    def _ping(self) -> bytes:
        """The first bytes of the reply to PING."""
        with self.connect() as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64)

    def stop(self) -> int:
        """SIGTERM, then the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(15)
        except subprocess.TimeoutExpired:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise

    def __enter__(self) -> Self:
        try:
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
