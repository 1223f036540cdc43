"""`disque bench`: measures how fast a server adds, delivers and acknowledges jobs.

The load is a closed loop: each client sends a batch, waits for all its replies, and sends the next. The latency of a
batch is that of its last reply. One thread drives all clients over raw sockets, to measure the server and not the
client library. Bodies come from a fixed seed. The last phase acknowledges the jobs, and jobs that remain after an error
or Ctrl-C are deleted. So the benchmark needs a queue that is not in use.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import selectors
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from disqued.cli.arguments import Parser, UsageError, at_least
from disqued.cli.connection import CommandRefusedError, Connection, ConnectionLostError
from disqued.cli.endpoint import Endpoint, choose_endpoint, endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.views.client import connected_client
from disqued.cli.views.columns import Column
from disqued.cli.views.table import print_rows, table_options
from disqued.client import ResponseError
from disqued.client.wire import Decoder
from disqued.resp.writer import request

SEED = 7711
TTL_S = 3600
"""Time to live of the jobs, in case they are not deleted."""
RECEIVE_BYTES = 1 << 16
PAGE_SIZE = 1000


@dataclass(frozen=True)
class Phase:
    """The result of one kind of request; `latencies_ms` are those of the batches, sorted."""

    name: str
    elapsed_s: float
    replies: list[Any]
    latencies_ms: list[float]

    @property
    def per_second(self) -> float:
        """Replies per second."""
        return round(len(self.replies) / self.elapsed_s, 1)

    def percentile_ms(self, percent: int) -> float:
        """The latency that this percentage of the batches did not exceed."""
        last = len(self.latencies_ms) - 1
        return round(self.latencies_ms[min(last, len(self.latencies_ms) * percent // 100)], 3)


COLUMNS: tuple[Column[Phase], ...] = (
    Column("phase", lambda phase: phase.name, "PHASE"),
    Column("requests", lambda phase: len(phase.replies), "REQUESTS"),
    Column("seconds", lambda phase: round(phase.elapsed_s, 3), "SECONDS"),
    Column("per_second", lambda phase: phase.per_second, "PER SECOND", lambda phase: f"{phase.per_second:,.0f}"),
    Column("p50_ms", lambda phase: phase.percentile_ms(50), "P50 MS"),
    Column("p95_ms", lambda phase: phase.percentile_ms(95), "P95 MS"),
    Column("p99_ms", lambda phase: phase.percentile_ms(99), "P99 MS"),
    Column("max_ms", lambda phase: phase.percentile_ms(100), "MAX MS"),
)


def run(options: argparse.Namespace) -> Exit:
    """Measure ADDJOB, GETJOB and ACKJOB, one after the other."""
    options = _parser().parse(options.command[1:], options)
    endpoint = choose_endpoint(options)
    with (
        unused_queue(endpoint, options.queue or f"disque-bench-{os.getpid()}") as queue,
        contextlib.ExitStack() as stack,
    ):
        clients = [
            LoadClient(stack.enter_context(Connection(endpoint))) for _ in range(min(options.clients, options.jobs))
        ]
        phases = list(measure(Loader(clients, options.pipeline), queue, options))
    print_rows(COLUMNS, phases, options.form, "")
    return Exit.OK


def measure(loader: Loader, queue: str, options: argparse.Namespace) -> Iterator[Phase]:
    """Run the three phases. Raises `CommandRefusedError` if the server refuses a request."""
    name = os.fsencode(queue)
    body = random.Random(SEED).randbytes(options.body_bytes)  # noqa: S311  load, not a secret
    copies = [b"REPLICATE", b"%d" % options.replicate] if options.replicate else []
    add = request([b"ADDJOB", name, body, b"0", b"TTL", b"%d" % TTL_S, *copies])
    yield loader.run("add", [add] * options.jobs)
    get = request([b"GETJOB", b"NOHANG", b"FROM", name])
    got = loader.run("get", [get] * options.jobs)
    yield got
    ids = [job[1] for jobs in got.replies if isinstance(jobs, list) for job in jobs]
    yield loader.run("ack", [request([b"ACKJOB", job_id]) for job_id in ids])


@contextlib.contextmanager
def unused_queue(endpoint: Endpoint, queue: str) -> Iterator[str]:
    """Check that the queue has no jobs in any state, and delete its jobs afterwards.

    Raises:
        UsageError: the queue has jobs.
    """
    with connected_client(endpoint) as client:
        if next(iter(client.jscan(queue=queue, page_size=PAGE_SIZE)), None) is not None:
            raise UsageError(f"disque bench: queue '{queue}' has jobs; choose a queue that is not in use")
    try:
        yield queue
    finally:
        with connected_client(endpoint) as client:
            for job_id in list(client.jscan(queue=queue, page_size=PAGE_SIZE)):
                client.fast_ack(job_id)


class LoadClient:
    """One client: a connection and the batch in flight."""

    def __init__(self, connection: Connection) -> None:
        self.socket = connection.socket
        self._decoder = Decoder()
        self._missing = 0
        self._sent_s = 0.0

    def send(self, batch: list[bytes]) -> None:
        """Send a batch and start to measure its latency."""
        self._missing = len(batch)
        self._sent_s = time.perf_counter()
        self.socket.sendall(b"".join(batch))

    def receive(self, replies: list[Any]) -> float | None:
        """Read replies; return the latency of the batch in ms when it is complete."""
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionLostError("Error: Server closed the connection")
        for reply in self._decoder.feed(data):
            if isinstance(reply, ResponseError):
                raise CommandRefusedError(str(reply))
            replies.append(reply)
            self._missing -= 1
        return None if self._missing else (time.perf_counter() - self._sent_s) * 1000


class Loader:
    """All clients, driven by one thread."""

    def __init__(self, clients: list[LoadClient], pipeline: int) -> None:
        self._lanes = clients
        self._pipeline = pipeline

    def run(self, name: str, requests: Iterable[bytes]) -> Phase:
        """Send each request on the next free client, and wait for all replies."""
        todo = iter(requests)
        replies: list[Any] = []
        latencies_ms: list[float] = []
        began_s = time.perf_counter()
        with selectors.DefaultSelector() as selector:
            for client in self._lanes:
                if batch := list(islice(todo, self._pipeline)):
                    selector.register(client.socket, selectors.EVENT_READ, client)
                    client.send(batch)
            while selector.get_map():
                for key, _ in selector.select():
                    client = key.data
                    latency_ms = client.receive(replies)
                    if latency_ms is None:
                        continue
                    latencies_ms.append(latency_ms)
                    if batch := list(islice(todo, self._pipeline)):
                        client.send(batch)
                    else:
                        selector.unregister(client.socket)
        elapsed_s = time.perf_counter() - began_s
        return Phase(name, elapsed_s, replies, sorted(latencies_ms))


def _parser() -> Parser:
    parser = Parser(
        "disque bench",
        None,
        "Measure how fast the server adds, delivers and acknowledges jobs. Jobs of the benchmark are deleted.",
        [endpoint_options()],
    )
    add = parser.add_argument
    add("-c", "--clients", type=at_least(int, 1), default=10, help="number of parallel connections (default 10)")
    add("-P", "--pipeline", type=at_least(int, 1), default=1, help="requests per batch (default 1)")
    add("-n", "--jobs", type=at_least(int, 1), default=10_000, help="number of jobs (default 10000)")
    add("--body-bytes", type=at_least(int, 0), default=64, help="size of each body in bytes (default 64)")
    add("--replicate", type=at_least(int, 1), help="copies of each job (default: that of the server)")
    add("--queue", help="a queue that is not in use (default: a new one)")
    table_options(parser)
    return parser
