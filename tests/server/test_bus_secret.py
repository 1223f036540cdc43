"""The secret of a cluster of real processes: its file, SIGHUP, and what the log says."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from disqued.bus import kinds
from disqued.bus.bigendian import u32
from disqued.bus.writer import FrameWriter
from disqued.core.cluster.peer import BUS_PORT_DISTANCE
from disqued.testing.processes import ServerProcess, form_cluster
from server.refusing import run_server
from server.test_bus import on_the_bus, rest
from support.cluster import RealCluster, RealNode

OLD, NEW = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"


def write(path: Path, *secrets: str) -> Path:
    path.write_text("\n".join(secrets) + "\n")
    path.chmod(0o600)
    return path


def has_read(node: RealNode, count: int) -> bool:
    return f"Read {count} cluster secrets" in node.log


def test_processes_with_the_secret_form_a_cluster_and_rotate_it_by_sighup(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret", OLD)
    with RealCluster(tmp_path, 3, "--cluster-secret-file", str(secret)) as cluster:
        one, two, three = cluster.nodes
        job = one.call("ADDJOB", "q", "body", 5000, "REPLICATE", 3)
        assert three.call("SHOW", job) is not None

        for secrets in ((OLD, NEW), (NEW, OLD), (NEW,)):
            write(secret, *secrets)
            for node in cluster.nodes:
                node.server.process.send_signal(signal.SIGHUP)
                cluster.wait_until(partial(has_read, node, len(secrets)), "the secrets were read")
            two.restart()
            cluster.wait_whole()
        assert all(OLD not in node.log and NEW not in node.log for node in cluster.nodes)


def test_program_without_the_secret_gets_no_answer(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret", OLD)
    with RealCluster(tmp_path, 2, "--cluster-secret-file", str(secret)) as cluster, on_the_bus(cluster.nodes[0]) as bus:
        ping = b"DbuZ" + (144).to_bytes(4, "big") + b"\0\1" + bytes(6) + b"bad0" * 10 + bytes(88)
        bus.sendall(ping)
        assert rest(bus) == b""


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot read cluster-secret-file {}: No such file or directory"),
        ("short", "cluster-secret-file {}: secret 1 has 5 bytes, expected 16 to 512"),
        ("", "cluster-secret-file {}: expected one secret"),
    ],
)
def test_server_does_not_start_with_a_wrong_file(tmp_path: Path, content: str | None, reason: str) -> None:
    secret = tmp_path / "secret"
    if content is not None:
        secret.write_text(content)
    finished = run_server(tmp_path, "--cluster-secret-file", str(secret))
    assert finished.status == 1
    assert reason.format(secret) in finished.out


def test_readable_file_and_open_bus_port_are_warned_about(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(OLD)
    secret.chmod(0o644)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    everywhere = ("--cluster-bind", "0.0.0.0")
    with ServerProcess(tmp_path / "a", "--cluster-secret-file", str(secret), *everywhere) as server:
        server.wait_until(lambda: "is now ready to accept connections" in server.log.read_text(), "it started")
        assert f"All users of this machine can read {secret}" in server.log.read_text()
        assert "the bus port is open" not in server.log.read_text()
    with ServerProcess(tmp_path / "b", *everywhere) as server:
        server.wait_until(lambda: "is now ready to accept connections" in server.log.read_text(), "it started")
        assert "the bus port is open on 0.0.0.0, and every program" in server.log.read_text()


# --- programs that occupy the port ------------------------------------------------------------------------------------

FEW_DESCRIPTORS = ("setpriv", "--bounding-set", "-sys_resource", "prlimit", "--nofile=60:60")
FEW_CONNECTIONS = ("--maxclients", "20", "--cluster-node-timeout", "60000", "--cluster-secret-file")


@pytest.fixture
def occupied(tmp_path: Path) -> Iterator[ServerProcess]:
    """A node with a secret and few connections on its bus port, all of which are held by programs that say nothing."""
    secret = write(tmp_path / "secret", OLD)
    (tmp_path / "occupied").mkdir()
    with (
        ServerProcess(tmp_path / "occupied", *FEW_CONNECTIONS, str(secret), launcher=FEW_DESCRIPTORS) as server,
        contextlib.ExitStack() as opened,
    ):
        server.wait_loaded()
        unknown = [opened.enter_context(on_the_bus(server)) for _ in range(50)]
        assert rest(unknown[0]) == b"", "a new connection takes the place of the oldest"
        yield server


def test_programs_that_hold_all_connections_do_not_keep_a_node_out(tmp_path: Path, occupied: ServerProcess) -> None:
    (tmp_path / "joining").mkdir()
    with ServerProcess(tmp_path / "joining", "--cluster-secret-file", str(tmp_path / "secret")) as joining:
        form_cluster([occupied, joining])
    log = occupied.log.read_text()
    assert log.count("Closing connections to the bus port that belong to no node: connection limit of ") == 1


def test_one_address_cannot_take_the_place_of_a_node_that_proves_the_secret_slowly(occupied: ServerProcess) -> None:
    address = ("127.0.0.1", occupied.port + BUS_PORT_DISTANCE)
    with (
        socket.create_connection(address, 10, source_address=("127.0.0.2", 0)) as slow,
        contextlib.ExitStack() as opened,
    ):
        flood = [opened.enter_context(on_the_bus(occupied)) for _ in range(100)]
        assert rest(flood[0]) == b""
        slow.sendall(FrameWriter(b"bad0" * 10, 7711).other(kinds.CHALLENGE, u32(1) + bytes(32)))
        assert slow.recv(100).startswith(b"DbuZ")
