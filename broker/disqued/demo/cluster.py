"""A cluster of three broker nodes, each with its own process and folder, removed at the end."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from disqued.client import Client, RepairStatus
from disqued.client.nodes import DEFAULT_PORT
from disqued.config.options import DEFAULT_HTTP_PORT
from disqued.testing.ports import LOOPBACK, free_port, is_free
from disqued.testing.processes import ServerProcess, form_cluster, is_complete

NODES = 3

NODE_TIMEOUT_MS = 2000
"""The time after which the other nodes mark an unreachable node as failed."""


@dataclass(slots=True)
class BrokerNode:
    """A node: its ports and its current process. `http_port` is that of its console."""

    number: int
    port: int
    http_port: int
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
        """The address for clients."""
        return f"{LOOPBACK}:{self.port}"

    def console_page(self, queue: str) -> str:
        """The address of the page about a queue in the console."""
        return f"http://{LOOPBACK}:{self.http_port}/#queue={queue}"

    def start(self) -> None:
        """Start the process. A restarted node keeps its node ID and has lost its jobs."""
        directives = {
            "--port": self.port,
            "--bind": LOOPBACK,
            "--cluster-node-timeout": NODE_TIMEOUT_MS,
            "--http-port": self.http_port,
            "--http-actions": "yes",  # only this machine can reach it
        }
        arguments = [str(word) for pair in directives.items() for word in pair]
        # Its own session: Ctrl-C on the terminal reaches only the demonstration, which then stops the nodes.
        self.process = ServerProcess(self.folder, *arguments, port=self.port, bare=True, own_session=True)

    def stop(self) -> None:
        """Stop the process, and kill it if it does not end in time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.stop()

    def repair_status(self) -> RepairStatus:
        """Return whether all jobs of the node have their copies."""
        with Client((self.address,), discover=False) as client:
            return client.repair_status()

    def jobs(self) -> int:
        """Return the number of jobs that the node holds."""
        return int(self.process.info("jobs")["registered_jobs"])


@dataclass(frozen=True, slots=True)
class Cluster:
    """The nodes, in the order of their numbers."""

    nodes: tuple[BrokerNode, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every node is connected to all others and suspects none of them."""
        return is_complete([node.process for node in self.nodes])

    def ids(self) -> dict[str, BrokerNode]:
        """The nodes by their node IDs."""
        return {node.process.ask("CLUSTER MYID"): node for node in self.nodes}


def choose_ports(first: int | None = None) -> tuple[int, ...]:
    """Return a port for each node: `first` (default: Disque's port) and the next ones, skipping ports in use.

    A given `first` is returned even if it is in use, so that the start fails with an error that names it.
    """
    start = first or DEFAULT_PORT
    preferred = (port for port in range(start, start + NODES) if port == first or is_free(port))
    return tuple(itertools.islice(itertools.chain(preferred, iter(free_port, None)), NODES))


def choose_http_ports(ports: tuple[int, ...]) -> list[int]:
    """Return ports for the consoles of nodes on `ports`: next to Disque's default port its default one, if it is free.

    Beside another port it is left to the cluster that may have the default port, or be starting with it.
    """
    preferred = ports[0] == DEFAULT_PORT and is_free(DEFAULT_HTTP_PORT)
    return [int(DEFAULT_HTTP_PORT) if preferred else free_port(), *(free_port() for _ in ports[1:])]


@contextlib.contextmanager
def running_cluster(ports: tuple[int, ...]) -> Iterator[Cluster]:
    """Start a node on each port, join them to a cluster, and stop them at the end.

    Raises:
        ProcessFailedError: a node did not start, or the nodes did not connect.
    """
    with tempfile.TemporaryDirectory(prefix="disque-demo-") as folder, contextlib.ExitStack() as started:
        nodes: list[BrokerNode] = []
        http_ports = choose_http_ports(ports)
        for number, port in enumerate(ports, start=1):
            http_port = http_ports[number - 1]
            nodes.append(BrokerNode(number, port, http_port, Path(folder, f"node-{number}")))
            started.callback(nodes[-1].stop)
        for node in nodes:
            node.process.wait_loaded()
        form_cluster([node.process for node in nodes])
        yield Cluster(tuple(nodes))
