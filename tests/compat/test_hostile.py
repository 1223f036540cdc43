"""Clients that are broken, demanding, slow or disconnected do not affect the node, other clients or jobs.

Every test gets a node that already holds jobs, and checks at the end that the same process replies at once and has all
its jobs.
"""

from __future__ import annotations

import contextlib
import random
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat.replay import TIMEOUT_S, Client
from compat.wire import Failure, NotRespError, Reply, Status, decode_all, request
from disqued.testing.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

SAFE_JOBS = [b"safe-%d" % number for number in range(100)]
MEGABYTE = 1 << 20


Connect = Callable[[], Client]


@pytest.fixture
def node(server: ServerProcess) -> Iterator[ServerProcess]:
    """A node with jobs that must still be there after the test."""
    keeper = Client(server)
    for body in SAFE_JOBS:
        assert isinstance(keeper.call(b"ADDJOB", b"safe", body, b"0"), Status)
    yield server
    assert server.process.poll() is None
    witness = Client(server)
    assert witness.call(b"PING") == Status(b"PONG")
    jobs = witness.call(b"GETJOB", b"NOHANG", b"COUNT", b"1000", b"FROM", b"safe")
    assert isinstance(jobs, list)
    assert [job[2] for job in jobs if isinstance(job, list)] == SAFE_JOBS
    for client in (witness, keeper):
        assert client.finish() == b""


@pytest.fixture
def connect(node: ServerProcess) -> Iterator[Connect]:
    """Connections to the node; those still open at the end are closed."""
    with contextlib.ExitStack() as opened:

        def client() -> Client:
            new = Client(node)
            opened.callback(new.socket.close)
            return new

        yield client


def until_clients(client: Client, count: int) -> None:
    """Wait until the node has `count` connections, this one included."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        text = client.call(b"INFO", b"clients")
        assert isinstance(text, bytes)
        if b"connected_clients:%d\r\n" % count in text:
            return
        assert time.monotonic() < deadline, text


def answers_quickly(client: Client, within_s: float = 1.0) -> bool:
    """Whether the node answers this client without a noticeable wait."""
    started = time.monotonic()
    return client.call(b"PING") == Status(b"PONG") and time.monotonic() - started < within_s


def resident_bytes(server: ServerProcess) -> int:
    """Memory the process occupies."""
    with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as statm:  # noqa: PTH123  # not a file on a disk
        return int(statm.read().split()[1]) * resource.getpagesize()


def cpu_s(server: ServerProcess) -> float:
    """Processor time the process has used."""
    with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as stat:  # noqa: PTH123  # not a file on a disk
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


# --- requests that are not requests -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One node for all examples of a property."""
    with ServerProcess(tmp_path_factory.mktemp("target")) as process:
        yield process


WORDS = st.lists(st.binary(max_size=20), min_size=1, max_size=5).map(lambda words: request(*words))
PIECES = st.lists(
    st.one_of(
        st.binary(max_size=60),
        WORDS,
        st.sampled_from([b"*1\r\n", b"$4\r\nPING\r\n", b"PING\r\n", b"\r\n", b"\n", b"*-7\r\n", b"$", b'"', b"\x00"]),
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(pieces=PIECES)
def test_any_bytes_are_answered_or_end_the_connection(target: ServerProcess, pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    if any(word in data.upper() for word in (b"SHUTDOWN", b"DEBUG", b"MONITOR", b"CLIENT")):
        return
    client, witness = Client(target), Client(target)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for piece in pieces:
            client.socket.sendall(piece)
    received = client.finish()

    try:
        replies = decode_all(received)
    except NotRespError as problem:
        pytest.fail(f"{problem} in the answer to {data!r}")
    errors = [reply for reply in replies if isinstance(reply, Failure) and b"Protocol error" in reply.text]
    assert len(errors) <= 1
    assert not errors or replies[-1] is errors[0]
    assert witness.call(b"PING") == Status(b"PONG")
    assert witness.finish() == b""


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"*1048577\r\n", b"invalid multibulk length"),
        (b"*99999999999999999999999\r\n", b"invalid multibulk length"),
        (b"*2\r\n$6\r\nADDJOB\r\n$536870913\r\n", b"invalid bulk length"),
        (b"*2\r\n$6\r\nADDJOB\r\n$-1\r\n", b"invalid bulk length"),
        (b"*1\r\n" + b"1" * 70_000, b"expected '$', got '1'"),
        (b"*" + b"1" * 70_000, b"too big mbulk count string"),
        (b"*1\r\n$" + b"1" * 70_000, b"too big bulk count string"),
        (b"x" * 70_000, b"too big inline request"),
        (b"ADDJOB 'mail x 0\r\n", b"unbalanced quotes in request"),
    ],
    ids=lambda value: value[:30].decode() if isinstance(value, bytes) else None,
)
def test_malformed_request_gets_an_error_and_closes_the_connection(connect: Connect, sent: bytes, error: bytes) -> None:
    client = connect()
    client.socket.sendall(sent)

    assert client.rest() == b"-ERR Protocol error: %b\r\n" % error


def test_announced_size_allocates_no_memory(connect: Connect, node: ServerProcess) -> None:
    before = resident_bytes(node)
    clients = [connect() for _ in range(50)]
    for client in clients:
        client.socket.sendall(b"*1048576\r\n$536870912\r\nonly this much")
    other = connect()
    until_clients(other, len(clients) + 2)

    assert answers_quickly(other)
    assert resident_bytes(node) - before < 50 * MEGABYTE
    for client in clients:
        client.socket.close()
    until_clients(other, 2)


# --- requests in pieces, and too many of them -------------------------------------------------------------------------


def test_requests_arrive_byte_by_byte(connect: Connect) -> None:
    client = connect()
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = request(b"ADDJOB", b"slow", b"\x00\r\n$5\r\n*1\r\n", b"0") + b"PING 'a b'\r\n" + request(b"QLEN", b"slow")
    for byte in stream:
        client.socket.sendall(bytes([byte]))

    assert isinstance(client.read(), Status)
    assert client.read() == b"a b"
    assert client.read() == 1
    jobs = client.call(b"QPEEK", b"slow", b"1")
    assert isinstance(jobs, list)
    assert isinstance(jobs[0], list)
    assert jobs[0][2] == b"\x00\r\n$5\r\n*1\r\n"


def test_a_huge_pipeline_is_answered_in_order(connect: Connect) -> None:
    count = 20_000
    client = connect()
    stream = b"".join(request(b"ADDJOB", b"many", b"%d" % n, b"0") + request(b"PING", b"%d" % n) for n in range(count))
    writer = threading.Thread(target=client.socket.sendall, args=(stream,))
    writer.start()
    ids: set[Reply] = set()
    for number in range(count):
        ids.add(client.read())
        assert client.read() == b"%d" % number
    writer.join()

    assert len(ids) == count
    assert client.call(b"QLEN", b"many") == count


def test_a_big_body_arrives_in_pieces_while_others_are_served(connect: Connect) -> None:
    size = 64 * MEGABYTE
    body = random.Random(7).randbytes(size)
    client, other = connect(), connect()
    stream = memoryview(request(b"ADDJOB", b"big", body, b"0"))
    piece = 5 * MEGABYTE + 1
    for start in range(0, len(stream), piece):
        client.socket.sendall(stream[start : start + piece])
        assert answers_quickly(other)
    assert isinstance(client.read(), Status)

    client.send(b"GETJOB", b"FROM", b"big")
    client.send(b"QUIT")
    assert answers_quickly(other)
    jobs, goodbye = decode_all(client.rest())
    assert isinstance(jobs, list)
    assert isinstance(jobs[0], list)
    assert jobs[0][2] == body
    assert goodbye == Status(b"OK")


# --- clients that do not read, or read slowly -------------------------------------------------------------------------


def fill(client: Client, queue: bytes, megabytes: int) -> None:
    """Put jobs of 100 KiB in a queue."""
    for _ in range(megabytes * 10):
        client.call(b"ADDJOB", queue, b"x" * (MEGABYTE // 10), b"0")


@pytest.mark.parametrize("limit", [b"normal 4mb 0 0", b"normal 0 2mb 1"], ids=["hard", "soft"])
def test_client_that_never_reads_is_disconnected(connect: Connect, limit: bytes) -> None:
    other = connect()
    fill(other, b"big", 8)
    assert other.call(b"CONFIG", b"SET", b"client-output-buffer-limit", limit) == Status(b"OK")
    deaf = connect()
    deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    until_clients(other, 3)

    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for _ in range(10):
            deaf.send(b"QPEEK", b"big", b"80")
    until_clients(other, 2)
    assert answers_quickly(other)


def test_a_slow_reader_without_a_limit_gets_everything(connect: Connect) -> None:
    other = connect()
    fill(other, b"big", 4)
    slow = connect()
    slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    slow.send(b"QPEEK", b"big", b"40")
    slow.send(b"QUIT")

    assert answers_quickly(other)
    jobs, goodbye = decode_all(slow.rest())
    assert isinstance(jobs, list)
    assert len(jobs) == 40
    assert goodbye == Status(b"OK")


def test_a_small_reply_passes_a_tight_limit(connect: Connect) -> None:
    client = connect()
    assert client.call(b"CONFIG", b"SET", b"client-output-buffer-limit", b"normal 1000 0 0") == Status(b"OK")

    assert isinstance(client.call(b"INFO"), bytes)
    assert client.finish() == b""


# --- clients that are gone --------------------------------------------------------------------------------------------


def reset(client: Client) -> None:
    """Break the connection the hard way."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


def test_incomplete_request_has_no_effect(connect: Connect) -> None:
    other = connect()
    halves = [connect() for _ in range(20)]
    for number, half in enumerate(halves):
        half.socket.sendall(request(b"ADDJOB", b"half", b"x" * 100, b"0")[: -1 - number])
    until_clients(other, len(halves) + 2)
    for number, half in enumerate(halves):
        if number % 2:
            reset(half)
        else:
            half.socket.close()
    until_clients(other, 2)

    assert other.call(b"QLEN", b"half") == 0


def test_disconnected_blocked_client_takes_no_job(connect: Connect) -> None:
    other = connect()
    waiting = [connect() for _ in range(10)]
    for client in waiting:
        client.send(b"GETJOB", b"FROM", b"late", b"later")
    until_clients(other, len(waiting) + 2)
    for number, client in enumerate(waiting):
        if number % 3 == 0:
            reset(client)
        elif number % 3 == 1:
            client.socket.close()
        else:
            assert client.finish() == b""
    until_clients(other, 2)

    assert isinstance(other.call(b"ADDJOB", b"late", b"kept", b"0"), Status)
    assert other.call(b"QLEN", b"late") == 1


def test_job_of_a_dead_client_is_requeued(connect: Connect) -> None:
    other = connect()
    job_id = other.call(b"ADDJOB", b"once", b"again", b"0", b"RETRY", b"1")
    assert isinstance(job_id, Status)
    worker = connect()
    worker.send(b"GETJOB", b"FROM", b"once")
    while other.call(b"QLEN", b"once"):
        pass
    reset(worker)

    again = other.call(b"GETJOB", b"WITHCOUNTERS", b"TIMEOUT", b"5000", b"FROM", b"once")
    assert again == [[b"once", job_id.text, b"again", b"nacks", 0, b"additional-deliveries", 1]]


def test_idle_connections_are_closed_after_timeout(connect: Connect) -> None:
    other = connect()
    silent = [connect() for _ in range(30)]
    for client in silent:
        client.socket.sendall(b"*3\r\n$6\r\nADD")
    assert other.call(b"CONFIG", b"SET", b"timeout", b"1") == Status(b"OK")

    until_clients(other, 1)  # the keeper of the fixture was silent too
    assert all(client.rest() == b"" for client in silent)
    assert other.call(b"CONFIG", b"SET", b"timeout", b"0") == Status(b"OK")


# --- more clients than there is room for ------------------------------------------------------------------------------


def test_clients_beyond_maxclients_are_refused_and_connect_later(connect: Connect) -> None:
    main = connect()
    until_clients(main, 2)
    assert main.call(b"CONFIG", b"SET", b"maxclients", b"5") == Status(b"OK")
    seated = [connect() for _ in range(3)]
    for client in seated:
        assert answers_quickly(client)
    for _ in range(20):
        assert connect().rest() == b"-ERR max number of clients reached\r\n"

    seated[0].socket.close()
    until_clients(main, 4)
    assert answers_quickly(connect())
    assert main.call(b"CONFIG", b"SET", b"maxclients", b"100") == Status(b"OK")


def test_node_survives_a_full_file_descriptor_table(connect: Connect, node: ServerProcess) -> None:
    main = connect()
    until_clients(main, 2)
    _, hard = resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (30, hard))
    crowd = [connect() for _ in range(60)]  # the kernel takes them all, the node cannot
    for client in crowd:
        client.send(b"PING")

    assert answers_quickly(main)
    assert isinstance(main.call(b"ADDJOB", b"crowded", b"x", b"0"), Status)
    used_s = cpu_s(node)
    time.sleep(1)  # how busy the node is while it cannot accept
    assert cpu_s(node) - used_s < 0.5

    for client in crowd:
        client.socket.close()
    resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
    late = connect()
    assert late.call(b"PING") == Status(b"PONG")
    assert main.call(b"QLEN", b"crowded") == 1
