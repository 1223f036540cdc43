"""Three broker nodes that form a cluster, each in a process and a folder of its own; all gone at the end."""

from __future__ import annotations

import contextlib
import errno
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import disqued.core.jobs.job
from disqued.client import Backoff, Client, DisqueError, Hello
from disqued.client.nodes import DEFAULT_PORT, NORMAL_PRIORITY

HOST = "127.0.0.1"

NODES = 3

BUS_PORT_DISTANCE = 10000
"""The bus listens so far above the client port."""
HIGHEST_PORT = 65535 - BUS_PORT_DISTANCE

NODE_TIMEOUT_MS = 2000
"""After so long the nodes agree that one of them is down."""

START_TIMEOUT_S = 20.0
"""Patience with nodes that start on a slow machine."""

LOOK_S = 0.05

STOP_TIMEOUT_S = 10.0


class ClusterFailedError(Exception):
    """A node did not start, or the nodes did not find each other; the text holds the log."""


@dataclass(slots=True)
class BrokerNode:
    """One node: its port and the process that serves there now."""

    number: int
    port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """As people call it."""
        return f"node {self.number}"

    @property
    def address(self) -> str:
        """As a client wants it."""
        return f"{HOST}:{self.port}"

    @property
    def log(self) -> str:
        """What it said so far."""
        return (self.folder / "server.log").read_text()

    def start(self) -> None:
        """Start the process; a node that ran before is the same one again, with an empty memory."""
        self.folder.mkdir(exist_ok=True)
        timeout = ("--cluster-node-timeout", str(NODE_TIMEOUT_MS))
        command = [sys.executable, "-m", "disqued.server", "--port", str(self.port), "--bind", HOST, *timeout]
        with (self.folder / "server.log").open("ab") as output:
            self.process = subprocess.Popen(  # noqa: S603 (the command is ours)
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for us: we stop the nodes in order
            )

    def kill(self) -> None:
        """SIGKILL: it has no time for anything."""
        assert self.process is not None, "a node is started before it is killed"
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it in order, wherever it is."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def client(self) -> Client:
        """A client that stays with this node and does not wait for it."""
        return Client([self.address], discover=False, timeout_s=1, backoff=Backoff(attempts=1))

    def jobs(self) -> int:
        """How many jobs it knows of."""
        with self.client() as client:
            return int(client.info("jobs")["registered_jobs"])

    def hello(self) -> Hello | None:
        """Who it is and whom it knows; None when it does not answer, or another process does in its place."""
        assert self.process is not None, "a node is started before it is asked"
        try:
            with self.client() as client:
                ours = client.info("server")["process_id"] == str(self.process.pid)
                return client.hello() if ours else None
        except DisqueError:
            return None


@dataclass(frozen=True, slots=True)
class Cluster:
    """The nodes, in the order of their numbers."""

    nodes: tuple[BrokerNode, ...]

    @property
    def is_whole(self) -> bool:
        """Whether every node knows all others and finds nothing wrong with them."""
        return all(
            hello is not None
            and len(hello.nodes) == len(self.nodes)
            and all(node.priority == NORMAL_PRIORITY for node in hello.nodes)
            for hello in (node.hello() for node in self.nodes)
        )

    def ids(self) -> dict[str, BrokerNode]:
        """The nodes by their node IDs.

        Raises:
            ClusterFailedError: one does not answer.
        """
        found: dict[str, BrokerNode] = {}
        for node in self.nodes:
            hello = node.hello()
            if hello is None:
                raise ClusterFailedError(f"{node.name} does not answer:\n{node.log}")
            found[hello.node_id] = node
        return found

    def meet(self) -> None:
        """Make the nodes one cluster: the first is told of the others, and they find each other.

        Raises:
            ClusterFailedError: they do not.
        """
        deadline_s = time.monotonic() + START_TIMEOUT_S
        first, *others = self.nodes
        with first.client() as client:
            for other in others:
                client.execute("CLUSTER", "MEET", HOST, other.port)
        while not self.is_whole:
            if time.monotonic() > deadline_s:
                raise ClusterFailedError(f"the nodes do not find each other:\n{first.log}")
            time.sleep(LOOK_S)


def build() -> str:
    """How the broker's inner modules run here: `compiled` by mypyc, or `interpreted`."""
    return "interpreted" if str(disqued.core.jobs.job.__file__).endswith(".py") else "compiled"


def choose_ports(first: int | None = None) -> tuple[int, ...]:
    """A port for each node: the given one or that of Disque and the next ones, where they are free.

    Others that the system offers stand in for those in use, but for the given one, which is what somebody wants.
    """
    start = first or DEFAULT_PORT
    chosen: list[int] = [first] if first else []
    for port in _candidates(start):
        if len(chosen) == NODES:
            break
        if port not in chosen:
            chosen.append(port)
    return tuple(chosen)


def _candidates(start: int) -> Iterator[int]:
    """Free ports whose bus port is free as well: those from `start` on, then any."""
    for port in range(start, start + NODES):
        yield from _free(port)
    while True:
        yield from _free(0)


def _free(port: int) -> Iterator[int]:
    with contextlib.closing(socket.socket()) as probe, contextlib.closing(socket.socket()) as bus_probe:
        for sock in (probe, bus_probe):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            bound: int = probe.getsockname()[1]
            if bound > HIGHEST_PORT:
                return
            bus_probe.bind((HOST, bound + BUS_PORT_DISTANCE))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return
        yield bound


@contextlib.contextmanager
def running_cluster(ports: tuple[int, ...]) -> Iterator[Cluster]:
    """Start a node on each port, make them a cluster, and stop them at the end.

    Raises:
        ClusterFailedError: that did not work.
    """
    with tempfile.TemporaryDirectory(prefix="disque-demo-") as folder:
        nodes = tuple(
            BrokerNode(number, port, Path(folder, f"node-{number}")) for number, port in enumerate(ports, start=1)
        )
        try:
            for node in nodes:
                node.start()
            for node in nodes:
                _wait_until_ready(node)
            cluster = Cluster(nodes)
            cluster.meet()
            yield cluster
        finally:
            for node in nodes:
                node.stop()


def _wait_until_ready(node: BrokerNode) -> None:
    assert node.process is not None, "a node is started before it is waited for"
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while node.hello() is None:
        if node.process.poll() is not None:
            raise ClusterFailedError(f"{node.name} could not start on port {node.port}:\n{node.log}")
        if time.monotonic() > deadline_s:
            raise ClusterFailedError(f"{node.name} does not answer on port {node.port}:\n{node.log}")
        time.sleep(LOOK_S)
