"""Programs that serve on this machine: start one, wait until it serves, ask it, stop it; broker nodes form a cluster.

    with ServerProcess(directory, "--appendonly", "yes") as server:
        assert server.ask("PING") == "PONG"

The demonstration, the benchmarks, the screenshots of the documentation and the tests all start their nodes here. No
test tool is imported.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from disqued.testing.ports import LOOPBACK, free_port

SERVER: Final = (sys.executable, "-m", "disqued.server")
"""`disque-server`, as built for this interpreter."""

START_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 15.0
ANSWER_TIMEOUT_S: Final = 2.0
"""Another program on the port may accept connections and never answer."""
POLL_S: Final = 0.02
LOG: Final = "server.log"
BUG: Final = "BUG:"
"""What a node logs before an unexpected exception (`core/runtime/failures.py`)."""


class ProcessFailedError(Exception):
    """A process ended or timed out before it did what was waited for; the text contains its log."""


def wait_until(
    condition: Callable[[], object],
    what: str,
    log: Callable[[], str],
    timeout_s: float = START_TIMEOUT_S,
    poll_s: float = POLL_S,
) -> None:
    """Wait until a condition holds.

    Raises:
        ProcessFailedError: it did not hold in time.
    """
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise ProcessFailedError(f"timed out after {timeout_s:g} s: {what}\n{log()}")
        time.sleep(poll_s)


class LocalProcess:
    """A program that serves on a port; stopped and reaped when the context ends.

    It runs in `directory`, where its output is appended to `server.log`. `at` is where clients connect to: an address,
    or the path of a Unix socket. `own_session` keeps the Ctrl-C of a terminal away from it.
    """

    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        port: int,
        *,
        at: str = LOOPBACK,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        own_session: bool = False,
    ) -> None:
        self.directory = directory
        self.port = port
        self.at = at
        self.log = directory / LOG
        with self.log.open("ab") as log, tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            self.process = subprocess.Popen(  # noqa: S603 - programs of ours
                command,
                cwd=directory,
                env=environment,
                stdin=given,
                stdout=log,
                stderr=log,
                start_new_session=own_session,
            )

    @property
    def pid(self) -> int:
        """The process ID."""
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process exists, suspended or not."""
        return self.process.poll() is None

    @property
    def output(self) -> str:
        """Everything that this process and those before it in the directory printed."""
        return self.log.read_text(errors="replace")

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

    def ask(self, request: str, timeout_s: float = 60.0) -> str:
        """Send one inline command as Redis and Disque read it; returns the reply, a line or a bulk string."""
        with self.connect(timeout_s) as client, client.makefile("rb") as replies:
            client.sendall(request.encode() + b"\r\n")
            head: bytes = replies.readline()
            found: bytes = replies.read(int(head[1:])) if head.startswith(b"$") else head[1:].rstrip()
        return found.decode()

    def accepts(self) -> bool:
        """Whether something accepts connections where this process should."""
        with contextlib.suppress(OSError):
            self.connect().close()
            return True
        return False

    def wait_until(self, condition: Callable[[], object], what: str, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until a condition holds.

        Raises:
            ProcessFailedError: it did not hold in time, or the process ended.
        """

        def holds() -> bool:
            if not self.is_running:
                raise ProcessFailedError(
                    f"the process for port {self.port} exited with status {self.process.returncode}\n{self.output}"
                )
            return bool(condition())

        wait_until(holds, what, lambda: self.output, timeout_s)

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the process accepts connections."""
        self.wait_until(self.accepts, "it accepts connections", timeout_s)

    def kill(self) -> None:
        """SIGKILL, and reap the process."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM; returns the exit status.

        Raises:
            TimeoutExpired: the process did not end in time and was killed.
        """
        if self.is_running:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
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


class ServerProcess(LocalProcess):
    """`disque-server` on a free `port`, with directives as `arguments`.

    When it is `bare`, `arguments` and `config` specify everything, and `port` and `at` only tell where clients connect.
    `launcher` is a command that starts others, as `prlimit` does; `program` is what to start instead of the broker.
    """

    def __init__(
        self,
        directory: Path,
        *arguments: str,
        program: Sequence[str] = SERVER,
        port: int | None = None,
        config: str | None = None,
        stdin: bytes = b"",
        at: str = LOOPBACK,
        launcher: Sequence[str] = (),
        bare: bool = False,
        own_session: bool = False,
    ) -> None:
        port = port or free_port()
        command = [*launcher, *program]
        if config is not None:
            path = directory / "disque.conf"
            path.write_text(config)
            command.append(str(path))
        if not bare:
            command += ["--port", str(port), "--bind", LOOPBACK if "/" in at else at, "--http-port", "0"]
        command += arguments
        requested = "--http-port" in arguments
        self._http_port = int(arguments[arguments.index("--http-port") + 1]) if requested else 0
        super().__init__(command, directory, port, at=at, stdin=stdin, own_session=own_session)

    def accepts(self) -> bool:
        """Whether the ports for clients and for HTTP accept connections.

        The node completes its start, with the last lines of its log, before it answers the first command.
        """
        with contextlib.suppress(OSError):
            if self._http_port:
                socket.create_connection((LOOPBACK if "/" in self.at else self.at, self._http_port)).close()
            return super().accepts()
        return False

    def serves(self) -> bool:
        """Whether this process, not another one on its port, answers commands with all its jobs loaded."""
        with contextlib.suppress(OSError):
            found = self.info("server", ANSWER_TIMEOUT_S).get("process_id")
            return found == str(self.pid) and self.ask("PING", ANSWER_TIMEOUT_S) == "PONG"
        return False

    def wait_loaded(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the node answers commands with all its jobs loaded."""
        self.wait_until(self.serves, "it answers with its jobs loaded", timeout_s)

    def check_log(self) -> None:
        """Raises ProcessFailedError if a process in this directory logged an error of the program."""
        if BUG in self.output:
            raise ProcessFailedError(f"the node on port {self.port} logged a bug\n{self.output}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        if error is None:
            self.check_log()

    def info(self, section: str = "all", timeout_s: float = 60.0) -> dict[str, str]:
        """The fields of INFO."""
        lines = self.ask(f"INFO {section}", timeout_s).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)


def form_cluster(servers: Sequence[LocalProcess], *, chain: bool = False) -> None:
    """Make one cluster of all nodes, and wait until it is complete.

    The first node meets all others. In a `chain` each node meets only the next one, and gossip does the rest.

    Raises:
        ProcessFailedError: a node refused or they did not connect in time.
    """
    for number, server in enumerate(servers[1:]):
        by = servers[number] if chain else servers[0]
        reply = by.ask(f"CLUSTER MEET {server.at} {server.port}")
        if reply != "OK":
            raise ProcessFailedError(f"CLUSTER MEET {server.at} {server.port}: {reply}")
    wait_until(
        lambda: is_complete(servers),
        "the nodes form a cluster",
        lambda: "\n".join(f"{server.output}\n{_view_of(server)}" for server in servers),
    )


def _view_of(server: LocalProcess) -> str:
    """Its reply to CLUSTER NODES, or why there is none."""
    try:
        return server.ask("CLUSTER NODES")
    except OSError as error:
        return f"no reply to CLUSTER NODES: {error}"


def is_complete(servers: Sequence[LocalProcess]) -> bool:
    """Whether each node is connected to all the others, and to no more, and suspects none."""
    with contextlib.suppress(OSError):
        return all(server.is_running and sees_all(server.ask("CLUSTER NODES"), len(servers)) for server in servers)
    return False


def sees_all(cluster_nodes: str, nodes: int) -> bool:
    """Whether a reply to CLUSTER NODES lists that many nodes, itself included, all connected and none suspected."""
    lines = [line.split() for line in cluster_nodes.splitlines()]
    known = [set(words[2].split(",")) | {words[5]} for words in lines if words]
    return len(known) == nodes and all(flags <= {"myself", "leaving", "noflags", "connected"} for flags in known)
