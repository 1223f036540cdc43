"""The HTTP port of real processes: the answers to probes."""

from __future__ import annotations

import contextlib
import http.client
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.wire import Status
from disqued.build import FLAVOUR
from disqued.testing.ports import LOOPBACK, free_port
from disqued.testing.processes import ServerProcess
from persistence.samples import kept, make_job
from server.conftest import Connect
from server.refusing import run_server
from support.cluster import RealCluster

LONG = 200_000 if FLAVOUR == "compiled" else 30_000


class Http:
    """A node's HTTP port."""

    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, target: str, method: str = "GET") -> tuple[int, str]:
        """Status and text of one page."""
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, target)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()


@contextlib.contextmanager
def probed(directory: Path, *arguments: str) -> Iterator[tuple[ServerProcess, Http]]:
    port = free_port()
    with ServerProcess(directory, "--http-port", str(port), *arguments) as server:
        yield server, Http(port)


def test_a_node_alone_is_alive_ready_and_safe_to_stop(tmp_path: Path) -> None:
    with probed(tmp_path) as (server, pages):
        assert pages.get("/livez") == (200, "alive\n")
        assert pages.get("/readyz") == (200, "ready\n")
        assert pages.get("/stopz") == (200, "safe\n")
        assert pages.get("/stopz?timeout=0") == (200, "safe\n")
        assert f"Probes, metrics and the console are on port {pages.port} (HTTP)\n" in server.log.read_text()


ELSEWHERE = "127.97.11.1"
"""An address of this machine at which nothing else listens."""


def test_with_0_there_is_no_such_port(server: ServerProcess, connect: Connect) -> None:
    assert connect(server).call(b"PING") == Status(b"PONG")
    assert "(HTTP)" not in server.log.read_text()


def test_second_node_runs_without_http_when_the_default_port_is_in_use(tmp_path: Path) -> None:
    def node(name: str) -> ServerProcess:
        (tmp_path / name).mkdir()
        port = free_port()
        words = ("--port", str(port), "--bind", ELSEWHERE)
        return ServerProcess(tmp_path / name, *words, port=port, at=ELSEWHERE, bare=True, config="")

    def http_port(server: ServerProcess) -> bytes:
        with server.connect() as connection:
            connection.sendall(b"CONFIG GET http-port\r\n")
            return connection.recv(1000).split(b"\r\n")[-2]

    with node("one") as first, node("two") as second:
        assert (http_port(first), http_port(second)) == (b"9711", b"0")
        assert "This node serves no probes, metrics and console: set http-port." in second.log.read_text()

        with second.connect() as connection:
            connection.sendall(b"CONFIG REWRITE\r\n")
            assert connection.recv(1000) == b"+OK\r\n"
        assert "http-port" not in (tmp_path / "two" / "disque.conf").read_text(), "next time it may be free"

        words = ("--port", str(free_port()), "--bind", ELSEWHERE, "--http-port", "9711")
        asked = run_server(tmp_path, *words)
        assert asked.status == 1
        assert f"Can't listen on TCP port 9711 of {ELSEWHERE} for HTTP" in asked.out


def test_a_node_that_loads_is_alive_and_not_ready(tmp_path: Path) -> None:
    records = [kept(make_job(random.Random(seed), b"body %d" % seed)) for seed in range(100)]
    (tmp_path / "disque.aof").write_bytes(b"".join(records) * (LONG // 100))
    with probed(tmp_path, "--appendonly", "yes") as (server, pages):
        status, text = pages.get("/readyz")
        assert status == 503
        assert text.startswith("not ready: Loading disque.aof: ")
        assert pages.get("/livez") == (200, "alive\n")
        assert pages.get("/stopz") == (200, "safe\n")
        server.wait_loaded(60)
        assert pages.get("/readyz") == (200, "ready\n")


def test_stopz_is_unsafe_while_another_node_is_down(tmp_path: Path) -> None:
    ports = [free_port() for _ in range(2)]
    with RealCluster(tmp_path, 2, meet=False) as cluster:
        one, two = cluster.nodes
        for node, port in zip(cluster.nodes, ports, strict=True):
            node.kill()
            node.arguments += ["--http-port", str(port)]
            node.restart()
        cluster.meet()
        cluster.wait_whole()
        pages = Http(ports[0])
        assert pages.get("/stopz?timeout=20") == (200, "safe\n")

        for node in cluster.nodes:
            node.call("CLUSTER", "SAVECONFIG")
        two_id = two.call("CLUSTER", "MYID").decode()
        two.kill()
        cluster.wait_until(lambda: pages.get("/stopz?timeout=0")[1] != "safe\n")
        began = time.monotonic()
        status, text = pages.get("/stopz?timeout=0.5")
        assert time.monotonic() - began >= 0.5
        assert (status, text) == (200, f"not safe: node {two_id} (127.0.0.1:{two.port}) does not answer\n")

        two.restart()
        assert pages.get("/stopz?timeout=30") == (200, "safe\n")
        assert one.call("CLUSTER", "LEAVING", "yes") == b"OK"
        assert pages.get("/readyz") == (503, "not ready: this node is leaving the cluster\n")
        assert pages.get("/stopz?timeout=30") == (200, "safe\n")
        cluster.wait_until(lambda: "is leaving the cluster" in Http(ports[1]).get("/stopz?timeout=0")[1])


def test_open_http_connection_does_not_delay_shutdown(tmp_path: Path) -> None:
    with probed(tmp_path) as (server, pages):
        connection = http.client.HTTPConnection(LOOPBACK, pages.port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", "/livez")
            assert connection.getresponse().read() == b"alive\n"
            assert server.stop() == 0
            assert connection.sock.recv(1) == b""


@pytest.mark.parametrize(("shift", "other"), [(0, "--port"), (10000, "--port"), (0, "--cluster-port")])
def test_http_port_that_the_node_already_uses_is_refused(tmp_path: Path, shift: int, other: str) -> None:
    port = free_port()
    others = ["--port", str(free_port())] if other == "--cluster-port" else []
    outcome = run_server(tmp_path, *others, other, str(port), "--http-port", str(port + shift))
    assert outcome.status == 1
    assert (
        f"Port {port + shift} is already used by the client or bus port: change http-port." in outcome.out + outcome.err
    )


def test_http_port_in_use_is_named(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with probed(tmp_path / "one") as (_, pages):
        outcome = run_server(tmp_path / "two", "--port", str(free_port()), "--http-port", str(pages.port))
    assert outcome.status == 1
    assert f"Can't listen on TCP port {pages.port} of all addresses for HTTP" in outcome.out + outcome.err


def test_http_connections_take_no_descriptors_from_clients(tmp_path: Path, connect: Connect) -> None:
    launcher = ("setpriv", "--bounding-set", "-sys_resource", "prlimit", "--nofile=70:70")
    port = free_port()
    with (
        ServerProcess(tmp_path, "--http-port", str(port), launcher=launcher) as server,
        contextlib.ExitStack() as opened,
    ):
        for _ in range(40):
            opened.enter_context(socket.create_connection((LOOPBACK, port)))
        for _ in range(6):
            assert connect(server).call(b"PING") == Status(b"PONG")
        assert "Only 6 clients instead of 10000 (maxclients) can be served" in server.log.read_text()
        assert Http(port).get("/livez") == (200, "alive\n")
