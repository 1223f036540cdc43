"""A cluster of real broker processes on the loopback address, for tests that need sockets, signals and disks.

    with RealCluster(tmp_path, 3) as cluster:
        one, two, three = cluster.nodes
        job = one.call("ADDJOB", "q", "body", 0, "REPLICATE", 3)
        one.kill()
        cluster.wait_until(lambda: two.call("QLEN", "q") == 1)
        one.restart()
        cluster.wait_whole()

All nodes start at once, each in a directory of its own below the one given, on free ports, with the build under test
(interpreted, or compiled where `PYTHONPATH` says so). They have met when the context begins, unless `meet=False`, and
are stopped and reaped when it ends, whatever state they are in. `cluster-node-timeout` is a second: failures are
noticed after one to two. Nothing here sleeps for a fixed time: tests wait for what they want to see.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from disqued.client import ResponseError
from disqued.client.wire import Decoder, encode
from support.server import BUS_PORT_DISTANCE, LOOPBACK, ServerProcess, free_port

NODE_TIMEOUT_MS: Final = 1000
PATIENCE_S: Final = 30.0
"""For anything a test waits for; a machine with much to do is slow."""
LOOK_S: Final = 0.02

Word: TypeAlias = bytes | str | int


class NodeClient:
    """A connection to one node, which stays with it: without failover."""

    def __init__(self, port: int, timeout_s: float = PATIENCE_S, host: str = LOOPBACK) -> None:
        self.socket = socket.create_connection((host, port), timeout=timeout_s)
        self._decoder = Decoder()
        self._replies: deque[Any] = deque()

    def send(self, *words: Word) -> None:
        """Send a command; its reply is read by `read`."""
        self.socket.sendall(encode(words))

    def read(self) -> Any:
        """The next reply; an error is raised as `ResponseError`, the end of the connection as EOFError."""
        while not self._replies:
            data = self.socket.recv(1 << 16)
            if not data:
                raise EOFError("the node closed the connection")
            self._replies += self._decoder.feed(data)
        reply = self._replies.popleft()
        if isinstance(reply, ResponseError):
            raise reply
        return reply

    def call(self, *words: Word) -> Any:
        """The reply to a command."""
        self.send(*words)
        return self.read()

    def pipeline(self, commands: Sequence[Sequence[Word]]) -> list[Any]:
        """The replies to many commands, sent at once; errors are among them, not raised."""
        self.socket.sendall(b"".join(encode(words) for words in commands))
        replies: list[Any] = []
        for _ in commands:
            try:
                replies.append(self.read())
            except ResponseError as error:
                replies.append(error)
        return replies

    def close(self) -> None:
        """Hang up."""
        self.socket.close()


class RealNode:
    """One `disque-server`. `directory` stays the same over its restarts, `server` is the process of now.

    A test may set `host` and `port` while it is down: it comes back there.
    """

    def __init__(self, directory: Path, arguments: Sequence[str], host: str = LOOPBACK, port: int = 0) -> None:
        directory.mkdir()
        self.directory = directory
        self.host = host
        self.port = port or free_port(host)
        self.arguments = list(arguments)
        """What it is started with, at the next restart too."""
        self._client: NodeClient | None = None
        self.server = self._start()

    def _start(self) -> ServerProcess:
        return ServerProcess(self.directory, *self.arguments, port=self.port, at=self.host)

    @property
    def bus_port(self) -> int:
        """Where other nodes connect to, if the arguments do not say otherwise."""
        return self.port + BUS_PORT_DISTANCE

    @property
    def address(self) -> str:
        """As `disqued.client` wants it."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The process of now."""
        return self.server.process.pid

    @property
    def log(self) -> str:
        """All lines of all its runs."""
        return self.server.log.read_text()

    @property
    def is_running(self) -> bool:
        """Whether the process is there, stopped or not."""
        return self.server.process.poll() is None

    # --- asking -------------------------------------------------------------------------------------------------------

    def connect(self, timeout_s: float = PATIENCE_S) -> NodeClient:
        """One more connection; who opens it closes it."""
        return NodeClient(self.port, timeout_s, self.host)

    def call(self, *words: Word) -> Any:
        """The reply to a command over a connection that is kept."""
        if self._client is None:
            self._client = self.connect()
        try:
            return self._client.call(*words)
        except (OSError, EOFError):
            self._hang_up()
            raise

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    @property
    def id(self) -> str:
        """Its node ID."""
        return str(self.call("CLUSTER", "MYID").decode())

    def view(self) -> dict[str, set[str]]:
        """The nodes it knows by their IDs, with their flags (`myself`, `fail?`, `fail`, `handshake`, `leaving`, ...).

        A node it has no connection to has the flag `disconnected` as well.
        """
        lines = [line.split() for line in self.call("CLUSTER", "NODES").decode().splitlines()]
        return {words[0]: set(words[2].split(",")) | ({words[5]} - {"connected"}) for words in lines if words}

    def sees(self, others: int) -> bool:
        """Whether it is connected to so many other nodes, and to all it knows, and suspects none."""
        flags = [flags - {"myself", "leaving", "noflags"} for flags in self.view().values()]
        return len(flags) == others + 1 and not any(flags)

    def info(self, section: str = "all") -> dict[str, str]:
        """The fields of INFO."""
        lines = self.call("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def show(self, job_id: bytes | str) -> dict[bytes, Any] | None:
        """What SHOW says about a job; None when the node does not know it."""
        flat = self.call("SHOW", job_id)
        return None if flat is None else dict(zip(flat[::2], flat[1::2], strict=True))

    # --- what happens to it -------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """SIGKILL: it is gone at once, and so is what it had in memory."""
        self.server.process.kill()
        self.server.process.wait()
        self._hang_up()

    def end(self) -> int:
        """SIGTERM, then the exit status."""
        self._hang_up()
        return self.server.stop()

    def stop(self) -> None:
        """SIGSTOP: it hangs, and its connections stay open."""
        self.server.process.send_signal(signal.SIGSTOP)

    def cont(self) -> None:
        """SIGCONT: it goes on."""
        self.server.process.send_signal(signal.SIGCONT)

    def start(self) -> None:
        """Start again in the same directory on the same port; returns at once (see `ServerProcess.wait_ready`)."""
        self.server = self._start()

    def restart(self) -> None:
        """Kill it if it still runs, start it again, and wait until it takes clients."""
        if self.is_running:
            self.kill()
        self.start()
        self.server.wait_ready()

    def reap(self) -> None:
        """End of the test: no process is left, stopped ones included."""
        self._hang_up()
        if self.is_running:
            self.cont()
            self.server.stop()


class RealCluster:
    """`count` nodes below `directory`; `arguments` are directives for all of them. Used as a context."""

    def __init__(
        self,
        directory: Path,
        count: int = 3,
        *arguments: str,
        meet: bool = True,
        node_timeout_ms: int = NODE_TIMEOUT_MS,
    ) -> None:
        self.directory = directory
        self.arguments = ("--cluster-node-timeout", str(node_timeout_ms), *arguments)
        self.nodes: list[RealNode] = []
        self._meet = meet
        try:
            for _ in range(count):
                self.start_node()
        except BaseException:
            self.close()
            raise

    def start_node(self, *arguments: str, host: str = LOOPBACK, port: int = 0) -> RealNode:
        """One more node, with directives of its own; it starts while the test goes on, and knows nobody."""
        node = RealNode(self.directory / f"node-{len(self.nodes) + 1}", (*self.arguments, *arguments), host, port)
        self.nodes.append(node)
        return node

    def meet(self, *, chain: bool = False) -> None:
        """Make one cluster of all nodes and wait until it is whole.

        The first one meets every other one; in a `chain` each meets the next only, and gossip does the rest.
        """
        for number, node in enumerate(self.nodes[1:]):
            by = self.nodes[number] if chain else self.nodes[0]
            assert by.call("CLUSTER", "MEET", node.host, node.port) == b"OK"
        self.wait_whole()

    @property
    def running(self) -> list[RealNode]:
        """The nodes whose processes are there."""
        return [node for node in self.nodes if node.is_running]

    def wait_whole(self) -> None:
        """Wait until all running nodes are connected to each other, know nobody else and suspect nobody."""
        others = len(self.running) - 1
        self.wait_until(lambda: all(node.sees(others) for node in self.running), "the cluster is whole")

    def wait_until(self, condition: Callable[[], object], what: str = "it holds", within_s: float = PATIENCE_S) -> None:
        """Wait until a condition holds; AssertionError with all logs when it does not in time."""
        deadline_s = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > deadline_s:
                logs = "\n\n".join(f"{node.directory.name}, port {node.port}:\n{node.log}" for node in self.nodes)
                raise AssertionError(f"not within {within_s:g} s: {what}\n\n{logs}")
            time.sleep(LOOK_S)

    def holders(self, job_id: bytes | str, state: str | None = None) -> list[RealNode]:
        """The running nodes that know a job, in a state if one is given."""
        found = {node: node.show(job_id) for node in self.running}
        return [
            node
            for node, job in found.items()
            if job is not None and (state is None or job[b"state"] == state.encode())
        ]

    def close(self) -> None:
        """Stop all nodes."""
        with contextlib.ExitStack() as stack:
            for node in self.nodes:
                stack.callback(node.reap)

    def __enter__(self) -> Self:
        try:
            for node in self.nodes:
                node.server.wait_ready()
            if self._meet and len(self.nodes) > 1:
                self.meet()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
