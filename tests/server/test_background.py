"""Running in the background: the command ends when the server accepts clients, and a PID file has the process ID."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from disqued.testing.ports import free_port
from server.refusing import run_server

QUIET = ("--bind", "127.0.0.1", "--daemonize", "yes")


def ask(port: int, line: bytes) -> bytes:
    """The first bytes of a reply."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(line)
        return client.recv(1000)


def until_gone(process_id: int) -> None:
    """Wait until the process does not exist any more. It is not a child process, so `wait` is impossible."""
    deadline = time.monotonic() + 10
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.kill(process_id, 0)
            if Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return  # nobody reaps orphans in this container
            time.sleep(0.01)
        pytest.fail(f"process {process_id} is still there")


@pytest.fixture
def pid_file(tmp_path: Path) -> Iterator[Path]:
    """The path of the PID file; a server that is still running is killed at the end."""
    path = tmp_path / "disque.pid"
    yield path
    if path.exists():
        os.kill(int(path.read_text()), signal.SIGKILL)


def test_the_command_returns_when_the_server_serves(tmp_path: Path, pid_file: Path) -> None:
    port = free_port()
    outcome = run_server(tmp_path, "--port", str(port), *QUIET, "--pidfile", "disque.pid", "--logfile", "log")
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    assert ask(port, b"PING\r\n") == b"+PONG\r\n"
    process_id = int(pid_file.read_text())
    assert os.getsid(process_id) == process_id
    assert {Path(f"/proc/{process_id}/fd/{number}").readlink() for number in range(3)} == {Path(os.devnull)}
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines
    assert all(line.startswith(f"{process_id}:P ") for line in lines)

    os.kill(process_id, signal.SIGTERM)
    until_gone(process_id)
    assert not pid_file.exists()
    assert (tmp_path / "log").read_text().endswith("bye bye...\n")


def test_a_restarted_daemon_is_found_by_its_pid_file(tmp_path: Path, pid_file: Path) -> None:
    port = free_port()
    outcome = run_server(tmp_path, "--port", str(port), *QUIET, "--pidfile", "disque.pid")
    assert outcome.status == 0
    before = int(pid_file.read_text())
    assert ask(port, b"DEBUG RESTART\r\n") == b""
    until_gone(before)
    after = int(pid_file.read_text())
    assert after != before
    assert ask(port, b"PING\r\n") == b"+PONG\r\n"
    os.kill(after, signal.SIGTERM)
    until_gone(after)
    assert not pid_file.exists()


@pytest.mark.parametrize("log", [[], ["--logfile", "log"]])
def test_command_fails_with_the_reason_when_the_server_cannot_start(tmp_path: Path, log: list[str]) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        outcome = run_server(tmp_path, "--port", str(port), *QUIET, "--pidfile", "disque.pid", *log)
    assert outcome.status == 1
    assert f"Can't listen on TCP port {port} of 127.0.0.1: Address already in use" in outcome.out + outcome.err
    assert not (tmp_path / "disque.pid").exists()


def test_server_starts_when_its_pid_file_cannot_be_written(tmp_path: Path) -> None:
    port = free_port()
    outcome = run_server(tmp_path, "--port", str(port), *QUIET, "--pidfile", "gone/pid", "--logfile", "log")
    assert outcome.status == 0
    assert ask(port, b"PING\r\n") == b"+PONG\r\n"
    line = next(line for line in (tmp_path / "log").read_text().splitlines() if "PID file" in line)
    assert line.endswith(
        f" # Can't write the PID file {tmp_path}/gone/pid: No such file or directory. The server runs without one."
    )
    assert ask(port, b"SHUTDOWN\r\n") == b""
    until_gone(int(line.partition(":")[0]))


def test_in_the_foreground_there_is_no_pid_file(tmp_path: Path) -> None:
    outcome = run_server(tmp_path, "--pidfile", "disque.pid", "--port", "0")
    assert outcome.status == 1
    assert not (tmp_path / "disque.pid").exists()
