"""Nodes under a memory limit of the kernel: they refuse jobs before it kills them, keep serving, and recover."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from disqued.client.wire import Decoder, encode
from disqued.testing.processes import ServerProcess
from support.cgroup import LimitedGroup, unavailable
from support.fixtures import clients_of

MB = 1 << 20
UNAVAILABLE = unavailable()
REFUSED = ("OOM", "NOREPL")
DISK_IS_SLOW = "MISCONF Errors writing to the AOF file: The disk has not finished"
"""On a machine whose disk is busy a node refuses jobs for this reason, too, until the disk has caught up."""
TIMEOUT_S = 30.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(UNAVAILABLE), reason=UNAVAILABLE),
    pytest.mark.timeout(300),
]


class Client:
    """A connection that accepts replies of any size."""

    def __init__(self, server: ServerProcess) -> None:
        self.socket = server.connect(TIMEOUT_S)
        self._decoder = Decoder()
        self._replies: deque[Any] = deque()

    def send(self, *words: bytes | str | int) -> None:
        self.socket.sendall(encode(words))

    def read(self) -> Any:
        while not self._replies:
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError
            self._replies += self._decoder.feed(data)
        return self._replies.popleft()

    def call(self, *words: bytes | str | int) -> Any:
        self.send(*words)
        return self.read()

    def info(self) -> dict[str, str]:
        lines = self.call("INFO", "all").decode().split("\r\n")
        return dict(line.split(":", 1) for line in lines if ":" in line)


Connect: TypeAlias = Callable[[ServerProcess], Client]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes clients of a server, and closes them when the test ends."""
    yield from clients_of(Client)


@pytest.fixture(
    params=[pytest.param((192, "60%"), id="192mb"), pytest.param((512, "75%"), id="512mb", marks=pytest.mark.slow)]
)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[ServerProcess, LimitedGroup]]:
    """A node with a memory limit and an AOF; checks at the end that it was not killed and shuts down."""
    limit_mb, share = request.param
    words = ("--maxmemory", share, "--appendonly", "yes", "--auto-aof-rewrite-min-size", "8mb")
    with LimitedGroup(limit_mb * MB) as group:
        with ServerProcess(tmp_path, *words, launcher=group.launcher) as server:
            yield server, group
            assert group.kills() == 0
            assert server.process.poll() is None
            assert server.stop() == 0
        assert group.kills() == 0


def fill(client: Client, size: int, *options: str | int, batch: int = 50, timeout_ms: int = 2000) -> int:
    """Add jobs until a whole batch is refused for memory; returns how many were added."""
    added = 0
    while added <= 4096 * MB // (size + 400):
        client.socket.sendall(encode(("ADDJOB", "mail", b"x" * size, timeout_ms, *options)) * batch)
        replies = [client.read() for _ in range(batch)]
        refused = [reply for reply in replies if isinstance(reply, Exception)]
        unexpected = [reply for reply in refused if not str(reply).startswith((*REFUSED, DISK_IS_SLOW))]
        assert not unexpected, unexpected[0]
        added += batch - len(refused)
        if len(refused) == batch:
            if all(str(reply).startswith(REFUSED) for reply in refused):
                return added
            time.sleep(0.05)
    raise AssertionError("never refused")


def drain(client: Client, count: int = 20) -> int:
    """Fetch and acknowledge all jobs; returns how many there were."""
    done = 0
    while jobs := client.call("GETJOB", "NOHANG", "COUNT", count, "FROM", "mail"):
        assert client.call("ACKJOB", *[job[1] for job in jobs]) == len(jobs)
        done += len(jobs)
    return done


def recovered(client: Client, group: LimitedGroup) -> None:
    """Check that jobs are accepted again and that the process has shrunk."""
    deadline = time.monotonic() + TIMEOUT_S
    while int(client.info()["memory_level"]) > 0:
        assert time.monotonic() < deadline, client.info()
        time.sleep(0.05)
    assert isinstance(client.call("ADDJOB", "again", "there is room", 0), bytes)
    assert len(client.call("GETJOB", "NOHANG", "FROM", "again")) == 1
    assert group.kills() == 0


def test_the_limit_of_the_container_is_found(
    connect: Connect, node: tuple[ServerProcess, LimitedGroup], request: pytest.FixtureRequest
) -> None:
    limit_mb, share = request.node.callspec.params["node"]
    info = connect(node[0]).info()
    assert info["memory_limit_source"] == "cgroup"
    assert int(info["memory_limit"]) == limit_mb * MB
    assert int(info["maxmemory"]) == limit_mb * MB * int(share[:-1]) // 100


@pytest.mark.parametrize("size", [pytest.param(300, marks=pytest.mark.slow), 20_000, MB])
def test_node_refuses_jobs_at_its_memory_limit_and_recovers(
    connect: Connect, node: tuple[ServerProcess, LimitedGroup], size: int
) -> None:
    server, group = node
    client = connect(server)
    for _ in range(2):
        added = fill(client, size, batch=200 if size < 1000 else 10)
        info = client.info()
        assert int(info["used_memory"]) >= int(info["maxmemory"]) * (0.7 if size < MB else 0.5)
        client.call("BGREWRITEAOF")
        assert client.call("PING") == b"PONG"
        assert drain(client, 500 if size < 1000 else 20) == added
        recovered(client, group)


@pytest.mark.slow
@pytest.mark.long
def test_node_survives_jobs_of_all_sizes_at_its_memory_limit(
    connect: Connect, node: tuple[ServerProcess, LimitedGroup]
) -> None:
    """Remaining jobs of each size prevent the allocator from returning the memory between them."""
    server, group = node
    client = connect(server)
    kept: list[bytes] = []
    for size in (50, 3000, 60_000, 700_000, 400):
        fill(client, size, "RETRY", 1000, batch=10)
        jobs = []
        while got := client.call("GETJOB", "NOHANG", "COUNT", 50, "FROM", "mail"):
            jobs += [job[1] for job in got]
        kept += jobs[::50]
        done = [job for number, job in enumerate(jobs) if number % 50]
        for start in range(0, len(done), 500):
            client.call("ACKJOB", *done[start : start + 500])
        assert group.kills() == 0
    assert client.call("ACKJOB", *kept) == len(kept)
    recovered(client, group)


def test_node_survives_many_large_bodies_at_once(connect: Connect, node: tuple[ServerProcess, LimitedGroup]) -> None:
    server, group = node
    admin = connect(server)
    size = 12 * MB
    clients = [connect(server) for _ in range(60)]
    piece = b"x" * (256 << 10)
    for client in clients:
        client.socket.sendall(b"*4\r\n$6\r\nADDJOB\r\n$4\r\nmail\r\n$%d\r\n" % size)
    for _ in range(size // len(piece)):
        for client in clients:
            client.socket.sendall(piece)
        assert admin.call("PING") == b"PONG"
    for client in clients:
        client.socket.sendall(b"\r\n$1\r\n0\r\n")
    replies = [client.read() for client in clients]
    added = sum(isinstance(reply, bytes) for reply in replies)
    assert 0 < added < len(clients)
    assert all(str(reply).startswith(REFUSED) for reply in replies if not isinstance(reply, bytes))
    assert drain(admin) == added
    refused = admin.call("ADDJOB", "mail", b"x" * (200 * MB), 0)
    assert str(refused).startswith("OOM")
    recovered(admin, group)


def test_node_survives_many_clients_that_do_not_read(
    connect: Connect, node: tuple[ServerProcess, LimitedGroup]
) -> None:
    server, group = node
    admin = connect(server)
    added = fill(admin, 100_000, batch=10)
    greedy = [connect(server) for _ in range(20)]
    for client in greedy:
        with contextlib.suppress(OSError):  # it was disconnected
            for _ in range(20):
                client.send("QPEEK", "mail", 1000)
    assert drain(admin) == added
    for client in greedy:
        client.socket.close()
    recovered(admin, group)


@pytest.mark.slow
@pytest.mark.long
def test_node_survives_copies_during_an_aof_rewrite(
    connect: Connect, node: tuple[ServerProcess, LimitedGroup], tmp_path: Path
) -> None:
    server, group = node
    client = connect(server)
    (tmp_path / "other").mkdir()
    with ServerProcess(tmp_path / "other", "--maxmemory", "2gb") as other:
        adding = connect(other)
        assert adding.call("CLUSTER", "MEET", "127.0.0.1", server.port) == b"OK"
        deadline = time.monotonic() + TIMEOUT_S
        while len(adding.call("HELLO")) < 4 or len(client.call("HELLO")) < 4:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        request: bytes = encode(("ADDJOB", "mail", b"x" * 500, 0, "REPLICATE", 2, "ASYNC"))
        for _ in range(10):
            adding.socket.sendall(request * 5000)
            assert all(isinstance(adding.read(), bytes) for _ in range(5000))
            client.call("BGREWRITEAOF")
        added = 50_000
        for size in (5 * MB, 100_000):
            added += fill(adding, size, "REPLICATE", 2, batch=5, timeout_ms=200)
        while client.info()["copies_refused"] == "0":  # on a busy machine, adding also ends because a copy is late
            added += fill(adding, 100_000, "REPLICATE", 2, batch=5, timeout_ms=200)
        assert group.kills() == 0
        assert drain(adding, 500) >= added
        recovered(client, group)


@pytest.mark.slow
@pytest.mark.long
def test_file_larger_than_memory_is_loaded_and_new_jobs_are_refused(connect: Connect, tmp_path: Path) -> None:
    words = ("--appendonly", "yes", "--aof-enqueue-jobs-once", "yes")
    with ServerProcess(tmp_path, "--appendonly", "yes", "--maxmemory", "100mb") as server:
        added = fill(connect(server), 1000)
    with (
        LimitedGroup(256 * MB) as group,
        ServerProcess(tmp_path, *words, "--maxmemory", "20%", launcher=group.launcher) as server,
    ):
        client = connect(server)
        deadline = time.monotonic() + TIMEOUT_S
        while str(client.call("PING")).startswith("LOADING"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert client.call("QLEN", "mail") == added
        assert str(client.call("ADDJOB", "mail", "body", 0)).startswith(REFUSED)
        assert drain(client, 500) == added
        recovered(client, group)
