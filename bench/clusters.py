"""Clusters of three nodes, all on one core: ours, and RabbitMQ's with quorum queues.

All nodes share one core, so that the comparison with one node shows the cost of a job, not the number of cores. To the
load generator, a cluster is its first node.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

from brokers import BROKERS, Broker, Running, cores, pinned
from disqued.testing.ports import free_port
from disqued.testing.processes import LocalProcess, ProcessFailedError, form_cluster, wait_until

NODES = 3
FORMED_WITHIN_S = 60.0
RABBITMQ = Path("/usr/lib/rabbitmq/bin")  # where Debian's package has the programs that need no root

_BUSSTAT = re.compile(r"busstat_(\w+):sent=(\d+),sent_bytes=(\d+)")
_REGISTERED = re.compile(r"registered_jobs:(\d+)")

BusTraffic = dict[str, tuple[int, int]]  # kind of message -> messages and bytes sent


class Disqued:
    """Three of our nodes that form a cluster."""

    def __init__(self, broker: Broker = BROKERS[0]) -> None:
        self._broker = broker
        self._nodes = contextlib.ExitStack()
        self.nodes: list[Running] = []

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as started:
            for _ in range(NODES):
                self.nodes.append(started.enter_context(Running(self._broker)))
            try:
                form_cluster(self.nodes)
            except ProcessFailedError as problem:
                raise SystemExit(f"bench: {problem}") from None
            self._nodes = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._nodes.close()

    @property
    def broker(self) -> Broker:
        """Which protocol it speaks."""
        return self._broker

    @property
    def port(self) -> int:
        """Of the first node."""
        return self.nodes[0].port

    @property
    def other_port(self) -> int:
        """Of another node."""
        return self.nodes[1].port

    @property
    def pid(self) -> int:
        """Of the first node."""
        return self.nodes[0].pid

    @property
    def output(self) -> str:
        """What the nodes printed."""
        return "\n".join(node.output for node in self.nodes)

    def wait_for_copies(self, jobs: int) -> float:
        """Wait until every node holds that many jobs; returns the seconds."""
        began = time.monotonic()
        wait_for_jobs(self.nodes, jobs)
        return time.monotonic() - began

    def traffic(self) -> BusTraffic:
        """What all nodes together have sent to each other."""
        return sent_by(self.nodes)


def sent_by(nodes: Sequence[LocalProcess]) -> BusTraffic:
    """What nodes together have sent to each other."""
    total: BusTraffic = {}
    for node in nodes:
        for kind, messages, size in _BUSSTAT.findall(node.ask("INFO busstats")):
            before = total.get(kind, (0, 0))
            total[kind] = (before[0] + int(messages), before[1] + int(size))
    return total


def wait_for_jobs(nodes: Sequence[Running], jobs: int) -> None:
    """Wait until each of the nodes holds that many jobs."""
    _until(lambda: all(_registered(node) == jobs for node in nodes), f"every node holds {jobs} jobs", nodes[0])


class RabbitMQ:
    """Nodes of RabbitMQ with the default configuration, which keep quorum queues and persistent messages on disk."""

    broker = Broker(name="rabbitmq quorum", protocol="amqp", program="", arguments=(), package="rabbitmq-server")

    def __init__(self, count: int = NODES) -> None:
        self._count = count
        self._directory = tempfile.TemporaryDirectory(prefix="disqued-bench-")
        self._home = Path(self._directory.name)
        self._servers: list[LocalProcess] = []
        self._epmd_port = free_port()

    @staticmethod
    def installed() -> bool:
        """Whether it can be started here."""
        return (RABBITMQ / "rabbitmq-server").exists()

    def __enter__(self) -> Self:
        cookie = self._home / ".erlang.cookie"
        cookie.write_text("bench")
        cookie.chmod(0o600)
        try:
            for number in range(1, self._count + 1):
                self._start(number)
            _until(lambda: self._running() == self._count, "the nodes of RabbitMQ form a cluster", self)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.process.wait()
        subprocess.run(["epmd", "-kill"], env=self._environment(1), capture_output=True, check=False)
        self._directory.cleanup()

    @property
    def port(self) -> int:
        """Of the first node."""
        return self._servers[0].port

    @property
    def other_port(self) -> int:
        """Of another node."""
        return self._servers[1].port

    @property
    def pid(self) -> int:
        """Of the first node's process, below the scripts that start it."""
        pid = self._servers[0].pid
        while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if Path(f"/proc/{pid}/comm").read_text().startswith("beam"):
                break
            pid = int(children[0])
        return pid

    @property
    def output(self) -> str:
        """What the nodes printed last."""
        return "\n".join(server.output[-2000:] for server in self._servers)

    def _environment(self, number: int) -> dict[str, str]:
        home = self._home
        return os.environ | {
            "HOME": str(home),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_NODENAME": f"bench{number}@localhost",
            "RABBITMQ_MNESIA_BASE": str(home / f"data{number}"),
            "RABBITMQ_LOG_BASE": str(home / f"log{number}"),
            "RABBITMQ_CONFIG_FILE": str(home / f"node{number}.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
        }

    def _start(self, number: int) -> None:
        port = free_port()
        lines = [
            f"listeners.tcp.1 = 127.0.0.1:{port}",
            "cluster_formation.peer_discovery_backend = classic_config",
            *(
                f"cluster_formation.classic_config.nodes.{other} = bench{other}@localhost"
                for other in range(1, self._count + 1)
            ),
        ]
        (self._home / f"node{number}.conf").write_text("\n".join(lines) + "\n")
        (self._home / "plugins").write_text("[].\n")
        environment = self._environment(number) | {"RABBITMQ_DIST_PORT": str(free_port())}
        directory = self._home / f"node{number}"
        directory.mkdir()
        command = pinned(cores()[0], str(RABBITMQ / "rabbitmq-server"))
        self._servers.append(LocalProcess(command, directory, port, environment=environment, own_session=True))
        _until(self._servers[-1].accepts, "RabbitMQ accepts connections", self)

    def _running(self) -> int:
        command = [str(RABBITMQ / "rabbitmqctl"), "cluster_status", "--formatter", "json"]
        status = subprocess.run(command, env=self._environment(1), capture_output=True, text=True, check=False)
        return len(json.loads(status.stdout)["running_nodes"]) if status.returncode == 0 else 0


def waiting_clients(ports: list[int], count: int, queues: int) -> contextlib.AbstractContextManager[None]:
    """`count` clients that wait for jobs, spread over the nodes and over `queues` queues."""

    @contextlib.contextmanager
    def connected() -> Iterator[None]:
        with contextlib.ExitStack() as clients:
            for number in range(count):
                client = clients.enter_context(socket.create_connection(("127.0.0.1", ports[number % len(ports)])))
                client.sendall(b"GETJOB FROM idle%d\r\n" % (number % queues))
            yield

    return connected()


def _registered(node: Running) -> int:
    found = _REGISTERED.search(node.ask("INFO jobs"))
    return int(found[1]) if found else 0


def _until(condition: Callable[[], bool], what: str, nodes: Disqued | RabbitMQ | Running) -> None:
    """Wait until a condition holds; exits if it does not in time. Polls often, since the wait is measured."""
    try:
        wait_until(condition, what, lambda: nodes.output, FORMED_WITHIN_S, poll_s=0.005)
    except ProcessFailedError as problem:
        raise SystemExit(f"bench: {problem}") from None
