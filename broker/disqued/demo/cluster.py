"""Three broker nodes that form a cluster, each in its own process and folder; all are removed at the end."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from disqued.client.nodes import DEFAULT_PORT
from disqued.testing.ports import LOOPBACK, free_port, is_free
from disqued.testing.processes import ServerProcess, form_cluster, is_complete

NODES = 3

NODE_TIMEOUT_MS = 2000
"""After this time the nodes agree that one of them is down."""


@dataclass(slots=True)
class BrokerNode:
    """One node: its port, and the process that serves there now."""

    number: int
    port: int
    folder: Path
    process: ServerProcess = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.start()

    @property
    def name(self) -> str:
        """The name that is displayed."""
        return f"node {self.number}"

    @property
    def address(self) -> str:
        """The address that a client takes."""
        return f"{LOOPBACK}:{self.port}"

    def start(self) -> None:
        """Start the process. A node that ran before keeps its node ID and has lost its jobs."""
        arguments = ("--port", str(self.port), "--bind", LOOPBACK, "--cluster-node-timeout", str(NODE_TIMEOUT_MS))
        # Its own session: the Ctrl-C of a terminal is for the demonstration, which stops the nodes in order.
        self.process = ServerProcess(self.folder, *arguments, port=self.port, bare=True, own_session=True)

    def stop(self) -> None:
        """Stop the process, by force if it does not end in time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.stop()

    def jobs(self) -> int:
        """How many jobs it holds."""
        return int(self.process.info("jobs")["registered_jobs"])


@dataclass(frozen=True, slots=True)
class Cluster:
    """The nodes, in the order of their numbers."""

    nodes: tuple[BrokerNode, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every node is connected to all others and suspects none."""
        return is_complete([node.process for node in self.nodes])

    def ids(self) -> dict[str, BrokerNode]:
        """The nodes by their node IDs."""
        return {node.process.ask("CLUSTER MYID"): node for node in self.nodes}


def choose_ports(first: int | None = None) -> tuple[int, ...]:
    """A port for each node: `first`, by default Disque's, and the next ones, or random ones instead of those in use.

    A `first` that is given is used even if it is in use: it is what the user wants, and the start fails.
    """
    start = first or DEFAULT_PORT
    preferred = (port for port in range(start, start + NODES) if port == first or is_free(port))
    return tuple(itertools.islice(itertools.chain(preferred, iter(free_port, None)), NODES))


@contextlib.contextmanager
def running_cluster(ports: tuple[int, ...]) -> Iterator[Cluster]:
    """Start a node on each port, make them a cluster, and stop them at the end.

    Raises:
        ProcessFailedError: a node did not start, or the nodes did not connect.
    """
    with tempfile.TemporaryDirectory(prefix="disque-demo-") as folder, contextlib.ExitStack() as started:
        nodes = []
        for number, port in enumerate(ports, start=1):
            nodes.append(BrokerNode(number, port, Path(folder, f"node-{number}")))
            started.callback(nodes[-1].stop)
        for node in nodes:
            node.process.wait_loaded()
        form_cluster([node.process for node in nodes])
        yield Cluster(tuple(nodes))
