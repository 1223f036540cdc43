"""A real broker process on a free port, for tests that need sockets."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType


def free_port() -> int:
    """A TCP port nobody listens on, low enough for the bus port (port + 10000)."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
            if port <= 55535:
                return port


class ServerProcess:
    """`disque-server` in its own directory; stopped and reaped when the context ends."""

    def __init__(self, directory: Path, *arguments: str, port: int | None = None, config: str | None = None) -> None:
        self.directory = directory
        self.port = port if port is not None else free_port()
        self.log = directory / "server.log"
        command = [sys.executable, "-m", "disqued.server"]
        if config is not None:
            path = directory / "disque.conf"
            path.write_text(config)
            command.append(str(path))
        command += ["--port", str(self.port), "--bind", "127.0.0.1", *arguments]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def connect(self, timeout_s: float = 10.0) -> socket.socket:
        """A connected socket with a read timeout."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout_s)

    def wait_ready(self, timeout_s: float = 20.0) -> None:
        """Return when the server accepts connections; raise with its log when it ends first."""
        deadline = time.monotonic() + timeout_s
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"server ended with {self.process.returncode}:\n{self.log.read_text()}")
            with contextlib.suppress(OSError):
                self.connect().close()
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"server does not accept connections:\n{self.log.read_text()}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)

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

    def __enter__(self) -> ServerProcess:
        self.wait_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
