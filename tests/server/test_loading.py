"""Real processes that load an append-only file: their replies, their shutdown, and errors that stop them."""

from __future__ import annotations

import contextlib
import os
import pty
import random
import select
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.wire import Failure, Status
from disqued.build import FLAVOUR
from disqued.testing.ports import free_port
from disqued.testing.processes import SERVER, ServerProcess
from persistence.samples import kept, make_job
from server.conftest import Connect
from server.refusing import run_server

if TYPE_CHECKING:
    from compat.replay import Client
    from compat.wire import Reply

LOADING = Failure(b"LOADING Disque is loading the dataset in memory")
LONG = 700_000 if FLAVOUR == "compiled" else 80_000
"""Records that take a second or more to load."""


def write(directory: Path, *records: bytes) -> Path:
    """An append-only file."""
    path = directory / "disque.aof"
    path.write_bytes(b"".join(records))
    return path


def records(count: int) -> list[bytes]:
    return [kept(make_job(random.Random(seed), b"body %d" % seed)) for seed in range(count)]


@pytest.fixture
def loading(tmp_path: Path) -> ServerProcess:
    """A server that takes a while to load its file, which repeats the same jobs. It is suspended: see `ask`."""
    write(tmp_path, b"".join(records(100)) * (LONG // 100))
    server = ServerProcess(tmp_path, "--appendonly", "yes")
    server.wait_ready()
    server.process.send_signal(signal.SIGSTOP)
    return server


def ask(server: ServerProcess, client: Client, *requests: bytes) -> list[Reply]:
    """Send requests of one word or two to a suspended server, let it continue to load, and return its replies."""
    for request in requests:
        client.send(*request.split())
    server.process.send_signal(signal.SIGCONT)
    return [client.read() for _ in requests]


def bodies(reply: Reply) -> list[Reply]:
    """The bodies of the jobs in a reply to GETJOB."""
    assert isinstance(reply, list)
    return [job[2] for job in reply if isinstance(job, list)]


def test_clients_get_loading_errors_until_all_is_loaded(loading: ServerProcess, connect: Connect) -> None:
    with contextlib.ExitStack() as ended:
        ended.callback(loading.stop)
        client = connect(loading)
        answer, shown = ask(loading, client, b"PING", b"INFO persistence")
        assert answer == LOADING
        assert isinstance(shown, bytes)
        assert b"\r\nloading_total_bytes:%d\r\n" % (loading.directory / "disque.aof").stat().st_size in shown

        loading.wait_loaded()
        assert client.call(b"PING") == Status(b"PONG")
        shown = client.call(b"INFO", b"jobs")
        assert isinstance(shown, bytes)
        assert b"registered_jobs:100\r\n" in shown
        log = loading.log.read_text()
        assert log.index("DB loaded from append only file: ") < log.index("ready to accept connections on port")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, b"SHUTDOWN"])
def test_a_server_that_loads_ends_at_once(
    loading: ServerProcess, connect: Connect, how: signal.Signals | bytes
) -> None:
    client = connect(loading)
    assert ask(loading, client, b"PING") == [LOADING]
    size_bytes = (loading.directory / "disque.aof").stat().st_size
    if isinstance(how, bytes):
        client.send(how)
    else:
        loading.process.send_signal(how)
    assert loading.process.wait(5) == 0
    assert "DB loaded" not in loading.log.read_text()
    assert (loading.directory / "disque.aof").stat().st_size == size_bytes


def test_terminal_shows_the_loading_progress(tmp_path: Path) -> None:
    write(tmp_path, b"".join(records(100)) * (LONG // 100))
    terminal, slave = pty.openpty()
    command = [*SERVER, "--port", str(free_port()), "--bind", "127.0.0.1", "--appendonly", "yes"]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=slave) as process,
    ):
        os.close(slave)
        shown = b""
        deadline = time.monotonic() + 30
        while shown.count(b" %, ") < 2 and time.monotonic() < deadline and process.poll() is None:
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 4096)
        process.terminate()
        assert process.wait(10) == 0
    os.close(terminal)
    assert b"\r\x1b[KLoading disque.aof: " in shown
    assert b"Loading disque.aof" not in (tmp_path / "log").read_bytes()


@pytest.mark.parametrize(
    ("tail", "arguments", "said"),
    [
        (b"garbage", (), "Bad file format reading the append only file disque.aof at byte 0: a record begins with '*'"),
        (b"*2\r\n$7\r\nLOADJOB\r\n$99", ("--aof-load-truncated", "no"), "Unexpected end of the append only file"),
    ],
)
def test_a_server_with_a_bad_file_does_not_start(
    tmp_path: Path, tail: bytes, arguments: tuple[str, ...], said: str
) -> None:
    write(tmp_path, tail)
    outcome = run_server(tmp_path, "--port", str(free_port()), "--appendonly", "yes", *arguments)
    assert outcome.status == 1
    assert said in outcome.out
    assert "disque-check-aof disque.aof" in outcome.out
    assert "ready to accept" not in outcome.out
    assert (tmp_path / "disque.aof").read_bytes() == tail


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--appendonly", "yes"), "Can't open the append only file disque.aof: Permission denied"),
        (("--aof-enqueue-jobs-once", "yes"), "Can't read the append only file disque.aof: Permission denied"),
    ],
)
def test_a_server_that_may_not_read_its_file_does_not_start(
    tmp_path: Path, plain_user: list[str], arguments: tuple[str, ...], said: str
) -> None:
    path = write(tmp_path, *records(3))
    path.chmod(0)
    outcome = run_server(tmp_path, "--port", str(free_port()), *arguments, launcher=plain_user)
    path.chmod(0o600)
    assert outcome.status == 1
    assert said in outcome.out


def test_a_file_that_turns_out_bad_when_it_is_loaded_again_ends_the_server(tmp_path: Path, connect: Connect) -> None:
    server = ServerProcess(tmp_path, "--appendonly", "yes", "--aof-checksums", "no")
    server.wait_loaded()
    client = connect(server)
    client.call(b"ADDJOB", b"q", b"b", b"0")
    with (tmp_path / "disque.aof").open("ab") as file:
        file.write(b"garbage")
    client.send(b"DEBUG", b"LOADAOF")
    assert server.process.wait(10) == 1
    assert "Bad file format reading the append only file disque.aof at byte " in server.log.read_text()


def test_a_server_in_the_background_can_be_ended_while_it_loads(tmp_path: Path) -> None:
    write(tmp_path, b"".join(records(100)) * (LONG // 100))
    port = free_port()
    outcome = run_server(
        tmp_path, "--port", str(port), "--bind", "127.0.0.1", "--appendonly", "yes", "--daemonize", "yes",
        "--pidfile", "disque.pid", "--logfile", "log",
    )  # fmt: skip
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    pid_file = tmp_path / "disque.pid"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(b"PING\r\n")
        assert client.recv(1000).startswith(b"-LOADING")
        os.kill(int(pid_file.read_text()), signal.SIGTERM)
        while client.recv(1000):
            pass
    deadline = time.monotonic() + 10
    while pid_file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not pid_file.exists()
    assert "DB loaded" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("appendonly", ["yes", "no"])
def test_a_controlled_restart_brings_back_the_queues_once(tmp_path: Path, connect: Connect, appendonly: str) -> None:
    port = free_port()
    path = tmp_path / "disque.conf"
    path.write_text(f"# ours\nport {port}\nbind 127.0.0.1\nappendonly {appendonly}\n")

    def serve() -> tuple[ServerProcess, Client]:
        server = ServerProcess(tmp_path, "disque.conf", port=port, bare=True)
        server.wait_loaded()
        return server, connect(server)

    server, client = serve()
    for number in range(10):
        client.call(b"ADDJOB", b"q", b"b%d" % number, b"0", b"RETRY", b"0")
    client.call(b"ADDJOB", b"delayed", b"d", b"0", b"RETRY", b"0", b"DELAY", b"2")
    client.call(b"PAUSE", b"paused", b"in")
    assert bodies(client.call(b"GETJOB", b"FROM", b"q")) == [b"b0"]
    assert client.call(b"CONFIG", b"SET", b"aof-enqueue-jobs-once", b"yes") == Status(b"OK")
    assert client.call(b"CONFIG", b"REWRITE") == Status(b"OK")
    assert "\naof-enqueue-jobs-once yes\n" in path.read_text()
    client.send(b"SHUTDOWN", b"REWRITE-AOF")
    assert server.process.wait(10) == 0

    server, client = serve()
    assert "aof-enqueue-jobs-once yes" not in path.read_text()
    assert path.read_text().startswith("# ours\n")
    assert (tmp_path / "disque.aof").exists() == (appendonly == "yes")
    assert client.call(b"PAUSE", b"paused", b"state") == Status(b"in")
    assert bodies(client.call(b"GETJOB", b"COUNT", b"20", b"FROM", b"q")) == [b"b%d" % n for n in range(1, 10)]
    assert bodies(client.call(b"GETJOB", b"TIMEOUT", b"5000", b"FROM", b"delayed")) == [b"d"]
    assert server.stop() == 0

    server, client = serve()
    assert client.call(b"QLEN", b"q") == 0
    assert server.stop() == 0


def test_server_starts_empty_without_an_aof(tmp_path: Path, connect: Connect) -> None:
    server = ServerProcess(tmp_path, "--aof-enqueue-jobs-once", "yes")
    with contextlib.ExitStack() as ended:
        ended.callback(server.stop)
        server.wait_loaded()
        client = connect(server)
        assert client.call(b"PING") == Status(b"PONG")
        assert client.call(b"CONFIG", b"GET", b"aof-enqueue-jobs-once") == [b"aof-enqueue-jobs-once", b"no"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("appendonly", ["yes", "no"])
def test_sigterm_is_a_controlled_restart_with_rewrite_aof(
    tmp_path: Path, appendonly: str, number: signal.Signals, connect: Connect
) -> None:
    """With a read-only configuration, as in a container."""
    port = free_port()
    path = tmp_path / "disque.conf"
    path.write_text(f"port {port}\nbind 127.0.0.1\nappendonly {appendonly}\naof-restart-marker yes\n")
    path.chmod(0o444)

    def serve(*arguments: str) -> tuple[ServerProcess, Client]:
        server = ServerProcess(tmp_path, "disque.conf", *arguments, port=port, bare=True)
        server.wait_loaded()
        return server, connect(server)

    server, client = serve()
    assert client.call(b"CONFIG", b"SET", b"shutdown-on-sigterm", b"rewrite-aof") == Status(b"OK")
    for number_of_job in range(5):
        client.call(b"ADDJOB", b"q", b"b%d" % number_of_job, b"0", b"RETRY", b"0")
    assert bodies(client.call(b"GETJOB", b"FROM", b"q")) == [b"b0"]
    server.process.send_signal(number)
    assert server.process.wait(10) == 0
    assert (tmp_path / "disque.aof.restart").exists()

    server, client = serve("--shutdown-on-sigterm", "rewrite-aof")
    assert not (tmp_path / "disque.aof.restart").exists()
    assert bodies(client.call(b"GETJOB", b"COUNT", b"20", b"FROM", b"q")) == [b"b%d" % n for n in range(1, 5)]
    server.process.kill()
    server.process.wait()

    server, client = serve()
    assert client.call(b"QLEN", b"q") == 0
    assert server.stop() == 0
    assert path.read_text().endswith("aof-restart-marker yes\n")


@pytest.mark.slow
def test_sigterm_ends_the_server_when_the_file_cannot_be_written(
    tmp_path: Path, connect: Connect, plain_user: list[str]
) -> None:
    """The node retries for a while, then it ends without the file."""
    (tmp_path / "data").mkdir()
    options = ("--dir", "data", "--shutdown-on-sigterm", "rewrite-aof")
    server = ServerProcess(tmp_path, *options, launcher=plain_user)
    server.wait_loaded()
    assert isinstance(connect(server).call(b"ADDJOB", b"q", b"b", b"0"), Status)
    (tmp_path / "data").chmod(0o555)
    server.process.terminate()
    assert server.process.wait(20) == 0
    assert "Exiting without a file for a controlled restart" in server.log.read_text()
