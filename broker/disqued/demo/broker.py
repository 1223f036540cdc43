"""A broker node in a process and a folder of its own, both gone at the end."""

from __future__ import annotations

import contextlib
import errno
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import disqued.core.job
from disqued.client import Backoff, Client, DisqueError
from disqued.client.nodes import DEFAULT_PORT

HOST = "127.0.0.1"

HIGHEST_PORT = 55535
"""The bus listens 10000 above the client port."""

START_TIMEOUT_S = 20.0
"""Patience with a node that starts on a slow machine."""

LOOK_S = 0.05

STOP_TIMEOUT_S = 10.0


class BrokerFailedError(Exception):
    """The broker did not start; the text holds its log."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A running node: its address and its process ID."""

    port: int
    pid: int

    @property
    def address(self) -> str:
        """As a client wants it."""
        return f"{HOST}:{self.port}"


def build() -> str:
    """How the broker's inner modules run here: `compiled` by mypyc, or `interpreted`."""
    return "interpreted" if str(disqued.core.job.__file__).endswith(".py") else "compiled"


def choose_port() -> int:
    """The port of Disque when it is free, else one that the system offers."""
    return next(port for port in _candidates() if port <= HIGHEST_PORT)


def _candidates() -> Iterator[int]:
    yield from _bound(DEFAULT_PORT)
    while True:
        yield from _bound(0)


def _bound(port: int) -> Iterator[int]:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return
        bound: int = probe.getsockname()[1]
        yield bound


@contextlib.contextmanager
def running_broker(port: int) -> Iterator[Broker]:
    """Start a node on `port` and stop it at the end.

    Raises:
        BrokerFailedError: it did not come up.
    """
    with tempfile.TemporaryDirectory(prefix="disque-demo-") as folder:
        log = Path(folder, "server.log")
        process = _start(port, folder, log)
        try:
            _wait_until_ready(process, port, log)
            yield Broker(port, process.pid)
        finally:
            _stop(process)


def _start(port: int, folder: str, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "disqued.server", "--port", str(port), "--bind", HOST]
    with log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603 (the command is ours)
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is for us: we stop the broker in order
        )


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    with Client([f"{HOST}:{port}"], timeout_s=1, backoff=Backoff(attempts=1)) as client:
        while not _answers(client, process.pid):
            if process.poll() is not None:
                raise BrokerFailedError(f"the broker could not start on port {port}:\n{log.read_text()}")
            if time.monotonic() > deadline_s:
                raise BrokerFailedError(f"the broker does not answer on port {port}:\n{log.read_text()}")
            time.sleep(LOOK_S)


def _answers(client: Client, pid: int) -> bool:
    """True when it is this very process that answers."""
    try:
        return client.info("server")["process_id"] == str(pid)
    except DisqueError:
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
