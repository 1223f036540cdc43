"""Shutdown of the server by signals and commands, as clients see it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from pathlib import Path

import pytest

from compat.replay import Client
from compat.wire import Failure, Status, decode_all, request
from disqued.testing.processes import ServerProcess
from server.conftest import Connect

MEGABYTE = 1 << 20


def end(server: ServerProcess, number: signal.Signals) -> int:
    """Send a signal; returns the exit status."""
    server.process.send_signal(number)
    return server.process.wait(10)


def until_blocked(witness: Client, count: int) -> None:
    """Wait until `count` clients are blocked."""
    text = b""
    while b"blocked_clients:%d\r\n" % count not in text:
        reply = witness.call(b"INFO", b"clients")
        assert isinstance(reply, bytes)
        text = reply


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_cleanly_for_all_clients(
    server: ServerProcess, number: signal.Signals, connect: Connect
) -> None:
    witness, idle, blocked, monitor, half = (connect(server) for _ in range(5))
    blocked.send(b"GETJOB", b"FROM", b"none")
    half.socket.sendall(b"*3\r\n$6\r\nADDJOB")
    assert monitor.call(b"MONITOR") == Status(b"OK")
    until_blocked(witness, 1)

    assert end(server, number) == 0
    assert [client.rest() for client in (witness, idle, blocked, half)] == [b"", b"", b"", b""]
    monitor.rest()
    assert f" # Received {number.name}, shutting down...\n" in server.log.read_text()
    assert server.log.read_text().endswith(" # Disque is now ready to exit, bye bye...\n")
    with pytest.raises(ConnectionRefusedError):
        server.connect()


def test_a_signal_right_after_the_first_connection_is_a_clean_end_too(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    server.wait_ready()
    assert end(server, signal.SIGTERM) == 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGPIPE])
def test_other_signals_are_ignored(server: ServerProcess, number: signal.Signals, connect: Connect) -> None:
    client = connect(server)
    assert client.call(b"PING") == Status(b"PONG")
    for _ in range(3):
        server.process.send_signal(number)
        assert client.call(b"PING") == Status(b"PONG")
    assert client.finish() == b""


def test_a_second_interrupt_ends_a_server_that_is_stuck(server: ServerProcess, connect: Connect) -> None:
    client = connect(server)
    assert client.call(b"PING") == Status(b"PONG")
    client.send(b"DEBUG", b"SLEEP", b"30")
    began = time.monotonic()
    while server.process.poll() is None:
        server.process.send_signal(signal.SIGINT)
        try:
            server.process.wait(0.1)
        except subprocess.TimeoutExpired:
            assert time.monotonic() - began < 10
    assert server.process.returncode == 1
    assert client.rest() == b""


def test_shutdown_ends_the_server_after_the_replies_before_it(server: ServerProcess, connect: Connect) -> None:
    other, client = connect(server), connect(server)
    client.socket.sendall(request(b"ADDJOB", b"q", b"x", b"0") + request(b"PING") + request(b"SHUTDOWN") + b"PING\r\n")
    job, pong = decode_all(client.rest())
    assert isinstance(job, Status)
    assert pong == Status(b"PONG")
    assert other.rest() == b""
    assert server.process.wait(10) == 0


def test_clients_get_what_they_were_answered_before_the_end(server: ServerProcess, connect: Connect) -> None:
    client, witness = connect(server), connect(server)
    body = b"x" * (8 * MEGABYTE)
    assert isinstance(client.call(b"ADDJOB", b"q", body, b"0"), Status)
    client.send(b"GETJOB", b"FROM", b"q")
    while witness.call(b"QLEN", b"q"):
        pass
    server.process.send_signal(signal.SIGTERM)
    [[[_, _, received]]] = decode_all(client.rest())  # type: ignore[misc]
    assert received == body
    assert server.process.wait(10) == 0


def test_client_that_does_not_read_does_not_delay_shutdown(server: ServerProcess, connect: Connect) -> None:
    client, witness = connect(server), connect(server)
    assert isinstance(client.call(b"ADDJOB", b"q", b"x" * (16 * MEGABYTE), b"0"), Status)
    client.send(b"GETJOB", b"FROM", b"q")
    while witness.call(b"QLEN", b"q"):
        pass
    assert end(server, signal.SIGTERM) == 0


# --- clients that end their side --------------------------------------------------------------------------------------


def test_client_that_closed_its_side_gets_all_replies(server: ServerProcess, connect: Connect) -> None:
    client = connect(server)
    body = b"x" * (8 * MEGABYTE)
    client.socket.sendall(request(b"ADDJOB", b"q", body, b"0"))
    client.socket.sendall(b"".join(request(b"QPEEK", b"q", b"1") for _ in range(3)) + request(b"PING"))
    job, *peeks, pong = decode_all(client.finish())
    assert isinstance(job, Status)
    assert peeks == [[[b"q", job.text, body]]] * 3
    assert pong == Status(b"PONG")


def test_blocked_client_that_closed_its_side_is_released(server: ServerProcess, connect: Connect) -> None:
    waiting, witness = connect(server), connect(server)
    waiting.send(b"GETJOB", b"FROM", b"q")
    until_blocked(witness, 1)
    assert waiting.finish() == b""
    until_blocked(witness, 0)
    assert isinstance(witness.call(b"ADDJOB", b"q", b"x", b"0"), Status)
    assert witness.call(b"QLEN", b"q") == 1


# --- restarts and crashes ---------------------------------------------------------------------------------------------


def until_restarted(server: ServerProcess, client: Client, connect: Connect) -> Client:
    """Wait for the end of the connection, then for a new one that is answered.

    After a crash the system may close the client's connection before the sockets that take new ones.
    """
    assert client.rest() == b""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        server.wait_ready()
        with contextlib.suppress(OSError, EOFError):
            again = connect(server)
            assert again.call(b"PING") == Status(b"PONG")
            return again
    raise TimeoutError("the restarted server does not answer")


@pytest.mark.parametrize("words", [[b"RESTART"], [b"RESTART", b"50"], [b"CRASH-AND-RECOVER"]])
def test_debug_restart_serves_again_in_the_same_process(tmp_path: Path, words: list[bytes], connect: Connect) -> None:
    (tmp_path / "data").mkdir()
    with ServerProcess(tmp_path, config="dir data\nhz 20\nunixsocket s\n") as server:
        client = connect(server)
        before = client.call(b"CLUSTER", b"MYID")
        assert client.call(b"CONFIG", b"SET", b"hz", b"30") == Status(b"OK")
        client.send(b"DEBUG", *words)
        again = until_restarted(server, client, connect)
        assert server.process.poll() is None
        info = again.call(b"INFO", b"server")
        assert isinstance(info, bytes)
        assert b"process_id:%d\r\n" % server.process.pid in info
        assert again.call(b"CLUSTER", b"MYID") == before
        kept = b"30" if words[0] == b"RESTART" else b"20"
        assert again.call(b"CONFIG", b"GET", b"hz") == [b"hz", kept]
        assert again.call(b"CONFIG", b"GET", b"dir") == [b"dir", str(tmp_path / "data").encode()]
    assert server.process.returncode == 0
    assert not (tmp_path / "data" / "s").exists()


def test_a_configuration_from_standard_input_cannot_be_read_twice(tmp_path: Path, connect: Connect) -> None:
    path = str(tmp_path / "s")
    with ServerProcess(tmp_path, "-", stdin=b"port 0\nunixsocket s\n", at=path, bare=True) as server:
        client = connect(server)
        refused = client.call(b"DEBUG", b"RESTART")
        assert refused == Failure(b"ERR failed to restart the server. Check server logs.")
        assert client.call(b"PING") == Status(b"PONG")
    assert "Can't restart: the configuration was read from standard input" in server.log.read_text()


@pytest.mark.parametrize(
    ("kind", "number"),
    [(b"SEGFAULT", signal.SIGSEGV), (b"OOM", signal.SIGABRT), (b"ASSERT", signal.SIGABRT)],
)
def test_debug_crashes_are_real(tmp_path: Path, kind: bytes, number: signal.Signals, connect: Connect) -> None:
    server = ServerProcess(tmp_path)
    server.wait_ready()
    client = connect(server)
    client.send(b"DEBUG", kind)
    assert client.rest() == b""
    assert server.process.wait(10) == -number
    assert server.log.read_text().endswith(f" # Crashing on request: {kind.decode().lower()}\n")
