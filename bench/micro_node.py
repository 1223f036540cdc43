"""The cost of each verb in the node alone, without sockets, kernel and load generator, for tuning.

    python bench/micro_node.py                                  interpreted
    PYTHONPATH=build/compiled python bench/micro_node.py        compiled

Requests are encoded in advance and passed to `Node.client_bytes` as the server does; replies are dropped where the
server would write them. Figures are nanoseconds per job, the best of several runs, because disturbances only make code
slower. They do not include what `make bench` measures: system calls, and memory outside the processor cache. "Logged"
means with an append-only file whose writes are dropped.
"""

from __future__ import annotations

import argparse
import gc
import itertools
from collections.abc import Callable, Iterator
from time import perf_counter_ns

from disqued.build import FLAVOUR
from disqued.config import Config
from disqued.core.clients.session import Session
from disqued.core.host.disk import APPEND, DiskWork
from disqued.core.output.ready import Driver
from disqued.core.runtime.state import NodeState
from disqued.core.timers.timed import Timed
from disqued.core.timers.wheel import TimerWheel
from disqued.persistence.snapshot import Snapshot
from disqued.resp.request import RequestParser
from disqued.testing.disk import MemoryDisk
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalNode, encode

BATCH = 16
BODY = b"x" * 64
RUNS = 7
LONGEST_NS = 1 << 61


class NullDisk(MemoryDisk):
    """A disk on which appends take no time and store nothing."""

    def start(self, work: DiskWork) -> None:
        """Drop appended data."""
        if work.verb == APPEND:
            work.finished = True
        else:
            super().start(work)


class NullDiskHost(FakeHost):
    """A host with such a disk."""

    def new_disk(self) -> MemoryDisk:
        """An empty disk."""
        return NullDisk(lambda: self.now_ms)


class Client(Driver):
    """A connection to a node in this process, and its driver: replies are collected, then dropped."""

    def __init__(self, local: LocalNode) -> None:
        super().__init__()
        self._local = local
        self.state: NodeState = local.node.state
        self._session: Session = local.client().session
        self._reply = b""

    def send(self, data: bytes) -> bytes:
        """Pass bytes to the node and return its output."""
        node = self._local.node
        node.client_bytes(self._session, data, self._local.now_ms, self._local.host.stopwatch_ns())
        self._reply = b""
        node.carry(self)
        return self._reply

    def write_session(self, session: Session) -> None:
        """Take the replies of a turn."""
        session.flushing = False
        self._reply = b"".join(session.out)
        session.out.clear()


def _ids(reply: bytes) -> list[bytes]:
    """The job IDs in the reply to one GETJOB."""
    return [word for word in reply.split(b"\r\n") if word.startswith(b"D-")]


def adding(client: Client, jobs: int) -> int:
    """ADDJOB, pipelined by 16."""
    request = encode("ADDJOB", "q", BODY, 5000) * BATCH
    begin = perf_counter_ns()
    for _ in range(jobs // BATCH):
        client.send(request)
    return perf_counter_ns() - begin


def adding_singly(client: Client, jobs: int) -> int:
    """ADDJOB, one per read."""
    request = encode("ADDJOB", "q", BODY, 5000)
    begin = perf_counter_ns()
    for _ in range(jobs):
        client.send(request)
    return perf_counter_ns() - begin


def getting(client: Client, jobs: int) -> int:
    """GETJOB COUNT 32; the acknowledgements are not measured."""
    adding(client, jobs)
    request = encode("GETJOB", "NOHANG", "COUNT", 32, "FROM", "q")
    spent = 0
    for _ in range(jobs // 32):
        begin = perf_counter_ns()
        reply = client.send(request)
        spent += perf_counter_ns() - begin
        client.send(encode("ACKJOB", *_ids(reply)))
    return spent


def acknowledging(client: Client, jobs: int) -> int:
    """ACKJOB of 32 jobs; the fetches are not measured."""
    adding(client, jobs)
    fetch = encode("GETJOB", "NOHANG", "COUNT", 32, "FROM", "q")
    spent = 0
    for _ in range(jobs // 32):
        request = encode("ACKJOB", *_ids(client.send(fetch)))
        begin = perf_counter_ns()
        client.send(request)
        spent += perf_counter_ns() - begin
    return spent


def parsing(_client: Client, jobs: int) -> int:
    """Parsing 16 pipelined ADDJOBs."""
    parser = RequestParser()
    request = encode("ADDJOB", "q", BODY, 5000) * BATCH
    begin = perf_counter_ns()
    for _ in range(jobs // BATCH):
        parser.feed(request)
        while parser.next() is not None:
            pass
    return perf_counter_ns() - begin


def arming(_client: Client, jobs: int) -> int:
    """Setting and cancelling the timer of a job, with 10,000 other timers."""
    wheel = TimerWheel()
    things = [Timed() for _ in range(10_000)]
    begin = perf_counter_ns()
    for number, thing in zip(range(jobs), itertools.cycle(things), strict=False):
        wheel.arm(thing, 1_800_000_000_000 + number)
    for thing in things:
        wheel.disarm(thing)
    return perf_counter_ns() - begin


def loading(host: FakeHost) -> int:
    """Loading the append-only file at the start of a node."""
    begin = perf_counter_ns()
    local = LocalNode(_logging(), host)
    while local.node.state.loading:
        local.node.tick(local.now_ms)
    return perf_counter_ns() - begin


def rewriting(client: Client, jobs: int) -> int:
    """Writing the records of all jobs, as in a rewrite."""
    adding(client, jobs)
    snapshot = Snapshot(client.state, controlled=False)
    begin = perf_counter_ns()
    while not snapshot.over:
        snapshot.part(LONGEST_NS)
    return perf_counter_ns() - begin


def _logging() -> Config:
    config = Config()
    config.appendonly = True
    config.auto_aof_rewrite_percentage = 0
    return config


MEASURES: dict[str, Callable[[Client, int], int]] = {
    "parse by 16": parsing,
    "arm + disarm": arming,
    "ADDJOB by 16": adding,
    "ADDJOB singly": adding_singly,
    "GETJOB by 32": getting,
    "ACKJOB by 32": acknowledging,
    "rewrite": rewriting,
}
LOGGED: dict[str, Callable[[Client, int], int]] = {
    "ADDJOB by 16, logged": adding,
    "ADDJOB singly, logged": adding_singly,
    "ACKJOB by 32, logged": acknowledging,
}


def measure(jobs: int) -> Iterator[tuple[str, float]]:
    """Name and nanoseconds per job, the best of `RUNS`, each on a fresh node."""
    for name, run in MEASURES.items():
        yield name, min(run(Client(LocalNode()), jobs) for _ in range(RUNS)) / jobs
    for name, run in LOGGED.items():
        yield name, min(run(Client(LocalNode(_logging(), NullDiskHost())), jobs) for _ in range(RUNS)) / jobs
    written = LocalNode(_logging())
    adding(Client(written), jobs)
    yield "load", min(loading(written.host) for _ in range(RUNS)) / jobs


def main() -> None:
    """Print a line for each verb."""
    parser = argparse.ArgumentParser(description="Nanoseconds a job of each verb of the node, without sockets.")
    parser.add_argument("--jobs", type=int, default=32_000, help="a multiple of 32 (default 32000)")
    jobs = parser.parse_args().jobs
    gc.disable()  # as the server does
    print(f"the node, {FLAVOUR}, {jobs:,} jobs:")
    for name, nanoseconds in measure(jobs):
        print(f"  {name:<22} {nanoseconds:>8,.0f} ns")


if __name__ == "__main__":
    main()
