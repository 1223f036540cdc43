"""The cost of the page `/metrics`: the time to render it, and the longest turn of the event loop.

    python bench/metrics.py                                  interpreted
    PYTHONPATH=build/compiled python bench/metrics.py        compiled

The page is rendered as in the server, in turns of its event loop, for nodes with many queues; nothing is sent. Times
are CPU times, so other load on the machine has little effect. A client of the broker may have to wait for the longest
turn: it must stay below LONGEST_MS for any number of queues, or the script fails. Each page is rendered RUNS times, and
the run with the longest turn is shown. The last figure is the cost of counting: one value of a histogram. With
--throughput a server under load, whose page is read every second, is also compared with one without the HTTP port.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import threading
import urllib.request
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from time import process_time_ns
from typing import Any, cast

from brokers import BROKERS, Running
from disqued.build import FLAVOUR
from disqued.core.telemetry.histogram import PER_NS, Histogram
from disqued.httproutes import Answer, Exchange, Request
from disqued.metrics.server import ServerFigures
from disqued.server import metricspage
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalNode
from disqued.testing.ports import free_port
from generator import Load, compile_generator, offer

LONGEST_MS = 20.0
COUNTS = (100, 10_000, 100_000)
QUERIES = ("", "queues=all", "queue=*-7*&queues=all")
OBSERVED = 1_000_000
RUNS = 3
ROUNDS = 5
LOADS = {
    "add": Load("add", 100_000),
    "get": Load("get", 100_000),
    "add by 16": Load("add", 400_000, pipeline=16),
    "get by 32": Load("get", 400_000, fetch=32),
    "add, get and acknowledge": Load("cycle", 100_000, connections=50, workers=40),
}
EVERY_S = 1.0


class TimedHost(FakeHost):
    """A fake host whose stopwatch measures CPU time."""

    def stopwatch_ns(self) -> int:
        """The CPU time of this process."""
        return process_time_ns()


class Turns:
    """An event loop without other work, which measures the duration of each turn."""

    def __init__(self) -> None:
        self._next: deque[Callable[[], None]] = deque()
        self.longest_ns = 0
        self.all_ns = 0
        self.count = 0

    def call_later(self, _delay_s: float, callback: Callable[..., None], *args: Any) -> Turns:
        """Call it in the next turn."""
        self._next.append(lambda: callback(*args))
        return self

    def cancel(self) -> None:
        """Do nothing: calls cannot be cancelled here."""

    def run(self) -> None:
        """Run until no work is left."""
        while self._next:
            work = self._next.popleft()
            began_ns = process_time_ns()
            work()
            spent_ns = process_time_ns() - began_ns
            self.count += 1
            self.all_ns += spent_ns
            self.longest_ns = max(self.longest_ns, spent_ns)


class Reader:
    """A client that reads everything at once."""

    reads = True

    def __init__(self) -> None:
        self.size_bytes = 0

    def deliver(self, answer: Answer) -> None:
        """Fail: a short answer is an error here."""
        raise AssertionError(answer)

    def begin(self, answer: Answer) -> None:
        """Take the first part."""
        self.push(cast(bytes, answer.content))

    def push(self, data: bytes) -> None:
        """Take another part."""
        self.size_bytes += len(data)

    def complete(self) -> None:
        """The answer is complete."""

    def fail(self, bug: Exception) -> None:
        """Raise the error."""
        raise bug


def scrape(local: LocalNode, query: str) -> tuple[Turns, int]:
    """Render one page; returns the turns and the size."""
    turns, reader = Turns(), Reader()
    route = next(one for one in metricspage.routes(ServerFigures(lambda: "")) if one.path == "/metrics")
    exchange = Exchange(cast(AbstractEventLoop, turns), route, Request(query=query))
    exchange.client = reader
    exchange.call_later(0, lambda: route.handler(local.node, exchange))
    turns.run()
    return turns, reader.size_bytes


def with_queues(count: int) -> LocalNode:
    """A node with one job in each of `count` queues."""
    local = LocalNode(host=TimedHost())
    client = local.client()
    for number in range(count):
        client.call("ADDJOB", f"some-queue-{number}", "x", 0)
    return local


def measure_pages(counts: list[int]) -> float:
    """Print the table of pages; returns the longest turn in milliseconds."""
    longest_ms = 0.0
    print(f"{'queues':>8} {'query':24} {'page kB':>8} {'work ms':>8} {'turns':>6} {'longest ms':>10}")
    for count in counts:
        local = with_queues(count)
        gc.collect()
        gc.freeze()
        for query in QUERIES:
            runs = [scrape(local, query) for _ in range(RUNS)]
            turns, size_bytes = max(runs, key=lambda run: run[0].longest_ns)
            turn_ms = turns.longest_ns / 1e6
            longest_ms = max(longest_ms, turn_ms)
            print(
                f"{count:8} {query or '(default)':24} {size_bytes / 1e3:8.0f} {turns.all_ns / 1e6:8.1f} "
                f"{turns.count:6} {turn_ms:10.2f}"
            )
    return longest_ms


def measure_counting() -> None:
    """Print the cost of one value in the first bucket and in a later one."""
    for name, value in (("first", 1), ("fourth", 75)):
        histogram = Histogram((10, 25, 50, 100, 250), PER_NS)
        began_ns = process_time_ns()
        for _ in range(OBSERVED):
            histogram.observe(value)
        print(f"a value of the {name} bucket: {(process_time_ns() - began_ns) / OBSERVED:.0f} ns, with the call of it")


def _read_until(ended: threading.Event, page: str) -> None:
    while not ended.wait(EVERY_S):
        with urllib.request.urlopen(page, timeout=10) as answer:
            answer.read()


def rates(port: int) -> dict[str, float]:
    """Jobs per second of each load, while the page at that port is read; 0 for no HTTP port."""
    broker = replace(BROKERS[0], arguments=(*BROKERS[0].arguments, "--http-port", str(port)))
    ended = threading.Event()
    reader = threading.Thread(target=_read_until, args=(ended, f"http://127.0.0.1:{port}/metrics"))
    with Running(broker) as server:
        if port:
            reader.start()
        try:
            return {name: float(offer(server, load)["jobs_per_s"]) for name, load in LOADS.items()}
        finally:
            ended.set()
            if port:
                reader.join()


def measure_throughput() -> None:
    """Print the median of the ratios of all rounds; both servers run in each round."""
    compile_generator()
    found: dict[str, list[float]] = {name: [] for name in LOADS}
    for _ in range(ROUNDS):
        without, read = rates(0), rates(free_port())
        for name, ratios in found.items():
            ratios.append(read[name] / without[name])
    print(f"jobs per second with the page read every second, beside a server without it, {ROUNDS} rounds:")
    for name, ratios in found.items():
        print(f"{name:24} {statistics.median(ratios):.2f} [{min(ratios):.2f} to {max(ratios):.2f}]")


def main() -> int:
    """Measure; the exit status is 1 if a turn was too long."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--queues", type=int, nargs="+", default=list(COUNTS), help="numbers of queues")
    parser.add_argument("--throughput", action="store_true", help="and a real server under load, which takes minutes")
    arguments = parser.parse_args()
    gc.disable()
    print(f"the page /metrics, {FLAVOUR}")
    longest_ms = measure_pages(arguments.queues)
    measure_counting()
    if arguments.throughput:
        measure_throughput()
    if longest_ms > LONGEST_MS:
        print(f"A turn took {longest_ms:.1f} ms: more than {LONGEST_MS:.0f} ms", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
