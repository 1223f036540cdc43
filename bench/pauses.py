"""The longest reply that a client gets while another client gives the node a lot of work at once.

The node has many jobs, in one queue or each in a queue of its own. A witness, a process on the core of the generator,
sends one PING after the other; a client on a second connection sends the command of a row. The figure is the longest
time that the witness waited for a reply until that command had its reply, and what it began was over.
"""

from __future__ import annotations

import gc
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from brokers import Running, cores, pinned
from generator import Load, offer
from persistence import wait_for_rewrite
from workloads import BATCH, OURS, Sizes

IDS_AT_ONCE = 20_000
READ_BYTES = 1 << 20
JOIN_S = 3.0  # a part of the visits: they take a tenth of a millisecond for each job
WATCH_S = 0.3  # a node is watched for this time before and after what may hold it
SYNC_S = 2.5  # what was written is synced then: DEBUG LOADAOF waits for the disk

Results = dict[str, list[float]]  # row -> the longest reply in each round, ms


class Client:
    """A connection that sends requests of any size. It reads whole replies without parsing them."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, *words: bytes) -> bytes:
        """Send a request, and return the reply as bytes. A PING behind it shows where the reply ends."""
        self._send(encode(*words) + b"PING end-of-reply\r\n")
        end = b"$12\r\nend-of-reply\r\n"
        received = bytearray()
        while not received.endswith(end):
            data = self._socket.recv(READ_BYTES)
            if not data:
                raise SystemExit(f"bench: the node closed the connection after {words[:2]}")
            received += data
        return bytes(received[: -len(end)])

    def end(self, *words: bytes) -> None:
        """Send a request that ends the node."""
        self._send(encode(*words))
        if reply := self._socket.recv(READ_BYTES):
            raise SystemExit(f"bench: the node does not end: {reply!r}")

    def _send(self, data: bytes) -> None:
        """Send, without a deadlock if the node sends a long reply meanwhile."""
        self._socket.sendall(data)


def encode(*words: bytes) -> bytes:
    """A request."""
    return b"*%d\r\n" % len(words) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])


def watch(port: int) -> None:
    """The witness: print the longest wait for a PONG in milliseconds when the standard input is closed."""
    gc.disable()
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    longest_ns = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        sent_ns = time.perf_counter_ns()
        reply = b""
        with suppress(ConnectionError):  # the node may end
            connection.sendall(b"PING\r\n")
            reply = connection.recv(100)
        longest_ns = max(longest_ns, time.perf_counter_ns() - sent_ns)
        if not reply:
            break
    print(longest_ns / 1e6)


@contextmanager
def witness(port: int, longest_ms: list[float]) -> Iterator[None]:
    """Watch the node meanwhile, and append the longest reply."""
    command = pinned(cores()[1], sys.executable, __file__, "--watch", str(port))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(WATCH_S)
        yield
        time.sleep(WATCH_S)
        found, _ = process.communicate()
        longest_ms.append(float(found))


def ids_of(client: Client) -> list[bytes]:
    """The IDs of all jobs."""
    return [line[1:] for line in client.call(b"JSCAN", b"0", b"BUSYLOOP").split(b"\r\n") if line.startswith(b"+")]


@dataclass(frozen=True, slots=True)
class Row:
    """One operation."""

    title: str
    words: Callable[[list[bytes]], tuple[bytes, ...]]
    """The request, from the IDs of all jobs."""
    queues: int = 1
    dequeued: bool = False
    """The jobs are in no queue."""
    logged: bool = False
    ends: bool = False
    """The command ends the node."""
    rewrites: bool = False
    """The command begins a rewrite of the file."""


def _all(command: bytes) -> Callable[[list[bytes]], tuple[bytes, ...]]:
    return lambda ids: (command, *ids)


def _always(*words: bytes) -> Callable[[list[bytes]], tuple[bytes, ...]]:
    return lambda _: words


ROWS = (
    Row("ACKJOB of all jobs", _all(b"ACKJOB")),
    Row("DELJOB of all jobs", _all(b"DELJOB")),
    Row("NACK of all jobs", _all(b"NACK"), dequeued=True),
    Row("JSCAN BUSYLOOP", _always(b"JSCAN", b"0", b"BUSYLOOP")),
    Row("JSCAN BUSYLOOP REPLY all", _always(b"JSCAN", b"0", b"BUSYLOOP", b"REPLY", b"all")),
    Row("QPEEK of all jobs", _always(b"QPEEK", b"q", b"100000000")),
    Row("QSCAN BUSYLOOP, a queue for each job", _always(b"QSCAN", b"0", b"BUSYLOOP"), queues=0),
    Row("CONFIG GET with a pattern of 400 kB", _always(b"CONFIG", b"GET", b"*a" * 200_000)),
    Row("DEBUG FLUSHALL", _always(b"DEBUG", b"FLUSHALL")),
    Row("CLUSTER RESET, a queue for each job", _always(b"CLUSTER", b"RESET"), queues=0),
    Row("DEBUG LOADAOF", _always(b"DEBUG", b"LOADAOF"), logged=True),
    Row("BGREWRITEAOF", _always(b"BGREWRITEAOF"), logged=True, rewrites=True),
    Row("SHUTDOWN REWRITE-AOF", _always(b"SHUTDOWN", b"REWRITE-AOF"), logged=True, ends=True),
)


def _measure(row: Row, jobs: int) -> float:
    longest_ms: list[float] = []
    broker = replace(OURS, arguments=(*OURS.arguments, "--appendonly", "yes")) if row.logged else OURS
    with Running(broker) as server:
        offer(server, Load("add", jobs, pipeline=BATCH, queues=row.queues or jobs))
        client = Client(server.port)
        ids = ids_of(client)
        if len(ids) != jobs:
            raise SystemExit(f"bench: the node has {len(ids)} jobs instead of {jobs}")
        if row.dequeued:
            for start in range(0, jobs, IDS_AT_ONCE):
                client.call(b"DEQUEUE", *ids[start : start + IDS_AT_ONCE])
        request = row.words(ids)
        if row.logged:
            time.sleep(SYNC_S)
        with witness(server.port, longest_ms), aside():
            if row.ends:
                client.end(*request)
            else:
                client.call(*request)
            if row.rewrites:
                wait_for_rewrite(server)
    return longest_ms[0]


def _join(jobs: int) -> float:
    """The longest reply while another node joins, after which each job is visited."""
    longest_ms: list[float] = []
    with Running(OURS) as server, Running(OURS) as other:
        offer(server, Load("add", jobs, pipeline=BATCH))
        with witness(server.port, longest_ms), aside():
            Client(server.port).call(b"CLUSTER", b"MEET", b"127.0.0.1", b"%d" % other.port)
            time.sleep(JOIN_S)
    return longest_ms[0]


def _add_queues(jobs: int) -> float:
    """The longest reply to an add, when each makes a queue."""
    with Running(OURS) as server:
        line = offer(server, Load("add", jobs, pipeline=BATCH, queues=jobs))
    return float(line["latency_us"]["add"]["max"]) / 1000


@contextmanager
def aside() -> Iterator[None]:
    """Keep this process, which is the client, away from the node and the witness if there is a third core."""
    permitted = os.sched_getaffinity(0)
    node, watching = cores()
    os.sched_setaffinity(0, permitted - {node, watching} or {watching})
    yield
    os.sched_setaffinity(0, permitted)


def measure(sizes: Sizes, say: Callable[[str], None]) -> Results:
    """Measure all rows, `sizes.few_rounds` times."""
    others = {"adds, each to a new queue": _add_queues, "CLUSTER MEET, which visits each job": _join}
    measures = {title: partial(function, sizes.long) for title, function in others.items()}
    measures |= {row.title: partial(_measure, row, sizes.long) for row in ROWS}
    results: Results = {}
    for title, function in measures.items():
        longest_ms = results[title] = [function() for _ in range(sizes.few_rounds)]
        say(f"longest reply during {title}: {' '.join(f'{ms:.1f}' for ms in longest_ms)} ms")
    return results


if __name__ == "__main__":
    if sys.argv[1:2] != ["--watch"]:
        raise SystemExit(f"{Path(__file__).name} is a part of bench/run.py")
    watch(int(sys.argv[2]))
