"""A cluster of real broker processes on the loopback address, for tests that need sockets, signals and disks.

    with RealCluster(tmp_path, 3) as cluster:
        one, two, three = cluster.nodes
        job = one.call("ADDJOB", "q", "body", 0, "REPLICATE", 3)
        one.kill()
        cluster.wait_until(lambda: two.call("QLEN", "q") == 1)
        one.restart()
        cluster.wait_whole()

All nodes start at once, each in its own directory and on free ports, with the build under test (interpreted, or
compiled if `PYTHONPATH` says so). They form a cluster when the context begins, unless `meet=False`, and are stopped and
reaped when it ends. `cluster-node-timeout` is one second: failures are detected after one to two. Nothing here sleeps
for a fixed time; tests wait for conditions.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from disqued.core.cluster.peer import BUS_PORT_DISTANCE
from disqued.testing.ports import LOOPBACK, free_port
from disqued.testing.processes import ServerProcess, form_cluster, is_complete, wait_until
from support.nodeclient import TIMEOUT_S, NodeAccess

NODE_TIMEOUT_MS: Final = 1000


class RealNode(NodeAccess):
    """One `disque-server`. `directory` stays the same across restarts; `server` is the current process.

    A test may set `host` and `port` while the node is down: it starts there the next time.
    """

    def __init__(self, directory: Path, arguments: Sequence[str], host: str = LOOPBACK, port: int = 0) -> None:
        directory.mkdir()
        super().__init__(port or free_port(), host)
        self.directory = directory
        self.arguments = list(arguments)
        """The directives it starts with, at the next restart too."""
        self.server = self._start()

    def _start(self) -> ServerProcess:
        return ServerProcess(self.directory, *self.arguments, port=self.port, at=self.host)

    @property
    def bus_port(self) -> int:
        """Where other nodes connect to, unless the arguments say otherwise."""
        return self.port + BUS_PORT_DISTANCE

    @property
    def address(self) -> str:
        """The address as `disqued.client` takes it."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The process ID of the current process."""
        return self.server.pid

    @property
    def log(self) -> str:
        """All log lines, those of earlier processes included."""
        return self.server.output

    @property
    def is_running(self) -> bool:
        """Whether the process exists, suspended or not."""
        return self.server.is_running

    @property
    def id(self) -> str:
        """Its node ID."""
        return str(self.call("CLUSTER", "MYID").decode())

    def view(self) -> dict[str, set[str]]:
        """The flags of the nodes it knows by their IDs (`myself`, `fail?`, `fail`, `handshake`, `leaving`, ...).

        A node without a connection has the flag `disconnected` as well.
        """
        lines = [line.split() for line in self.call("CLUSTER", "NODES").decode().splitlines()]
        return {words[0]: set(words[2].split(",")) | ({words[5]} - {"connected"}) for words in lines if words}

    # --- faults -------------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """SIGKILL: the process and everything it had in memory are lost."""
        self.server.kill()
        self.hang_up()

    def end(self) -> int:
        """SIGTERM; returns the exit status."""
        self.hang_up()
        return self.server.stop()

    def stop(self) -> None:
        """SIGSTOP: the node hangs, and its connections stay open."""
        self.server.process.send_signal(signal.SIGSTOP)

    def cont(self) -> None:
        """SIGCONT: the node continues."""
        self.server.process.send_signal(signal.SIGCONT)

    def start(self) -> None:
        """Start again in the same directory; returns at once (see `ServerProcess.wait_ready`)."""
        self.server = self._start()

    def restart(self) -> None:
        """Kill the process if it still runs, start it again, and wait until it accepts clients."""
        if self.is_running:
            self.kill()
        self.start()
        self.server.wait_ready()

    def reap(self) -> None:
        """End the process, even a suspended one."""
        self.hang_up()
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
        """Start one more node, with directives of its own. It knows no other node; this does not wait for it."""
        node = RealNode(self.directory / f"node-{len(self.nodes) + 1}", (*self.arguments, *arguments), host, port)
        self.nodes.append(node)
        return node

    def meet(self, *, chain: bool = False) -> None:
        """Make one cluster of all nodes and wait until it is complete (see `form_cluster`)."""
        form_cluster([node.server for node in self.nodes], chain=chain)

    @property
    def running(self) -> list[RealNode]:
        """The nodes whose processes exist."""
        return [node for node in self.nodes if node.is_running]

    def wait_whole(self) -> None:
        """Wait until all running nodes are connected to each other, know no others and suspect none."""
        self.wait_until(lambda: is_complete([node.server for node in self.running]), "the cluster is complete")

    def wait_until(self, condition: Callable[[], object], what: str = "it holds", within_s: float = TIMEOUT_S) -> None:
        """Wait until a condition holds; ProcessFailedError with all logs if it does not in time."""
        wait_until(condition, what, self._logs, within_s)

    def _logs(self) -> str:
        return "\n\n".join(f"{node.directory.name}, port {node.port}:\n{node.log}" for node in self.nodes)

    def holders(self, job_id: bytes | str, state: str | None = None) -> list[RealNode]:
        """The running nodes that know a job, only those that have it in `state` if one is given."""
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
        if error is None:
            for node in self.nodes:
                node.server.check_log()
