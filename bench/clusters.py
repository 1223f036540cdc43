"""Clusters of three nodes, all on one core: ours, and RabbitMQ's with quorum queues.

All nodes share the broker's core, so that a cluster is compared with one node on what a job costs, not on how many
cores it was given. A cluster looks to the generator like its first node.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from brokers import BROKERS, Broker, Running, cores, free_port, pinned

NODES = 3
FORMED_WITHIN_S = 60.0
RABBITMQ = Path("/usr/lib/rabbitmq/bin")  # where Debian's package has the programs that need no root

_BUSSTAT = re.compile(r"busstat_(\w+):sent=(\d+),sent_bytes=(\d+)")
_REGISTERED = re.compile(r"registered_jobs:(\d+)")
_REACHABLE = re.compile(r"cluster_reachable_nodes:(\d+)")

BusTraffic = dict[str, tuple[int, int]]  # kind of message -> messages and bytes sent


class Disqued:
    """Three of our nodes that met."""

    def __init__(self, broker: Broker = BROKERS[0]) -> None:
        self._broker = broker
        self._nodes = contextlib.ExitStack()
        self.nodes: list[Running] = []

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as started:
            for _ in range(NODES):
                self.nodes.append(started.enter_context(Running(self._broker)))
            for node in self.nodes[1:]:
                self._order(f"CLUSTER MEET 127.0.0.1 {node.port}")
            _until(lambda: all(self._reachable(node) == NODES - 1 for node in self.nodes), "the nodes do not meet")
            self._nodes = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._nodes.close()

    @property
    def broker(self) -> Broker:
        """How to talk to it."""
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

    def log(self) -> str:
        """What the nodes printed."""
        return "\n".join(node.log() for node in self.nodes)

    def wait_for_copies(self, jobs: int) -> float:
        """Wait until every node holds that many jobs; returns the seconds."""
        began = time.monotonic()
        _until(lambda: all(self._registered(node) == jobs for node in self.nodes), f"the nodes do not all hold {jobs}")
        return time.monotonic() - began

    def traffic(self) -> BusTraffic:
        """What all nodes together sent to each other."""
        total: BusTraffic = {}
        for node in self.nodes:
            for kind, messages, size in _BUSSTAT.findall(node.ask("INFO busstats")):
                before = total.get(kind, (0, 0))
                total[kind] = (before[0] + int(messages), before[1] + int(size))
        return total

    def _order(self, request: str) -> None:
        """Have the first node do something."""
        answer = self.nodes[0].ask(request)
        if answer != "OK":
            raise SystemExit(f"bench: {request!r} was answered by {answer}")

    @staticmethod
    def _registered(node: Running) -> int:
        return _number(_REGISTERED, node.ask("INFO jobs"))

    @staticmethod
    def _reachable(node: Running) -> int:
        return _number(_REACHABLE, node.ask("CLUSTER INFO"))


class RabbitMQ:
    """Three nodes of RabbitMQ with the default configuration, which keep queues of the type quorum on disk."""

    broker = Broker(name="rabbitmq quorum", protocol="amqp", program="", arguments=(), package="rabbitmq-server")

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="disqued-bench-")
        self._home = Path(self._directory.name)
        self._ports: list[int] = []
        self._servers: list[subprocess.Popen[bytes]] = []
        self._epmd_port = self._last_port = free_port()

    @staticmethod
    def installed() -> bool:
        """Whether it can be started here."""
        return (RABBITMQ / "rabbitmq-server").exists()

    def __enter__(self) -> Self:
        cookie = self._home / ".erlang.cookie"
        cookie.write_text("bench")
        cookie.chmod(0o600)
        try:
            for number in range(1, NODES + 1):
                self._start(number)
            _until(lambda: self._running() == NODES, "the nodes of RabbitMQ do not form a cluster")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()
        subprocess.run(["epmd", "-kill"], env=self._environment(1), capture_output=True, check=False)
        self._directory.cleanup()

    @property
    def port(self) -> int:
        """Of the first node."""
        return self._ports[0]

    @property
    def other_port(self) -> int:
        """Of another node."""
        return self._ports[1]

    @property
    def pid(self) -> int:
        """Of the first node's process, below the scripts that start it."""
        pid = self._servers[0].pid
        while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if Path(f"/proc/{pid}/comm").read_text().startswith("beam"):
                break
            pid = int(children[0])
        return pid

    def log(self) -> str:
        """What the nodes printed."""
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(self._home.glob("out*")))

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

    def _next_port(self) -> int:
        """A port that was not given to another part, which may not listen yet."""
        self._last_port = free_port(self._last_port)
        return self._last_port

    def _start(self, number: int) -> None:
        self._ports.append(self._next_port())
        lines = [
            f"listeners.tcp.1 = 127.0.0.1:{self._ports[-1]}",
            "cluster_formation.peer_discovery_backend = classic_config",
            *(f"cluster_formation.classic_config.nodes.{other} = bench{other}@localhost" for other in (1, 2, 3)),
        ]
        (self._home / f"node{number}.conf").write_text("\n".join(lines) + "\n")
        (self._home / "plugins").write_text("[].\n")
        environment = self._environment(number) | {"RABBITMQ_DIST_PORT": str(self._next_port())}
        with (self._home / f"out{number}").open("wb") as out:
            server = subprocess.Popen(
                pinned(cores()[0], str(RABBITMQ / "rabbitmq-server")),
                cwd=self._home,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self._servers.append(server)
        _until(lambda: _listens(self._ports[number - 1]), f"RabbitMQ does not start:\n{self.log()}")

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


def _number(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found[1]) if found else 0


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _until(condition: Callable[[], bool], failure: str) -> None:
    """Wait until a condition holds; exits when it does not."""
    deadline = time.monotonic() + FORMED_WITHIN_S
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"bench: {failure}")
        time.sleep(0.005)
