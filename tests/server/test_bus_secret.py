"""The secret of a cluster of real processes: its file, SIGHUP, and what the log says."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

import pytest

from disqued.testing.processes import ServerProcess
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
