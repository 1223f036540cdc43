"""What Celery's tasks cost on this broker, on Redis and on RabbitMQ, in one run.

    python bench/frameworks.py                       all three, interpreted
    PYTHONPATH=build/compiled python bench/frameworks.py
    ... --systems disqued,redis --tasks 2000 --eta 10000 --rounds 1
    ... --document                                   also update docs/performance.md

The broker has one core, the worker the other one. The worker has two processes and Celery's defaults, so messages are
acknowledged when a task starts. Tasks append eight bytes to a file. Brokers are in memory, but RabbitMQ writes the
persistent messages of Celery to its disk. `disqued x3` is a cluster of three nodes, which share the core of the broker
and have a copy of each task before it is accepted. Measured are:

* tasks sent per second, and tasks done per second, from the first percent to the last one;
* the time from sending a task to an idle worker until it runs, and until its result is read;
* the memory that tasks with a time to start in an hour (ETA) add to the worker's main process until that has not grown
  for ten seconds, and how many of them the worker has then.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import machine
from brokers import BROKERS, Running, chosen, cores, pinned
from clusters import Disqued, RabbitMQ
from disqued.build import FLAVOUR
from disqued.testing.ports import LOOPBACK
from page import renew
from tables import Table

PAGE: Final = machine.ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- frameworks begin -->", "<!-- frameworks end -->"
PATIENCE_S: Final = 900.0
STEADY_S: Final = 10.0
"""Memory is steady when it has not grown for this long."""
STEADY_BYTES: Final = 1 << 20
ETA_S: Final = 3600
PINGS: Final = 200
PREFETCH: Final = 8
"""How many tasks a worker with two processes fetches ahead by default."""


@dataclass(frozen=True, slots=True)
class Urls:
    """Where Celery finds a system's broker and results."""

    broker: str
    results: str


@contextlib.contextmanager
def disqued() -> Iterator[Urls]:
    """One node."""
    with Running(BROKERS[0]) as node:
        url = f"disque://{LOOPBACK}:{node.port}"
        yield Urls(url, url)


@contextlib.contextmanager
def disqued_cluster() -> Iterator[Urls]:
    """Three nodes."""
    with Disqued() as cluster:
        url = "disque://" + ",".join(f"{LOOPBACK}:{node.port}" for node in cluster.nodes)
        yield Urls(url, url)


@contextlib.contextmanager
def redis() -> Iterator[Urls]:
    """One node without files, with results in another database of it."""
    with Running(chosen(["redis lists"])[0]) as node:
        yield Urls(f"redis://{LOOPBACK}:{node.port}/0", f"redis://{LOOPBACK}:{node.port}/1")


@contextlib.contextmanager
def rabbitmq() -> Iterator[Urls]:
    """One node, through which results come back as well."""
    if not RabbitMQ.installed():
        raise SystemExit("bench: not installed: rabbitmq-server. Install it, or choose others with --systems")
    with RabbitMQ(1) as node:
        yield Urls(f"amqp://guest:guest@{LOOPBACK}:{node.port}//", "rpc://")


SYSTEMS: Final = {"disqued": disqued, "disqued x3": disqued_cluster, "redis": redis, "rabbitmq": rabbitmq}


@dataclass(slots=True)
class Figures:
    """What was measured of one system, a value per round."""

    sent_per_s: list[float] = field(default_factory=list)
    done_per_s: list[float] = field(default_factory=list)
    start_ms: list[float] = field(default_factory=list)
    start_p99_ms: list[float] = field(default_factory=list)
    result_ms: list[float] = field(default_factory=list)
    eta_bytes: list[float] = field(default_factory=list)
    eta_held: list[int] = field(default_factory=list)


class Bench:
    """Celery against one broker."""

    def __init__(self, folder: Path, urls: Urls) -> None:
        self._out = folder / "out"
        self._log = folder / "worker.log"
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")))),
            "CELERY_BROKER_URL": urls.broker,
            "CELERY_RESULT_BACKEND": urls.results,
            "BENCH_OUT": str(self._out),
        }
        self.app = _app(urls)

    @contextlib.contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        """A worker that runs tasks."""
        program = (sys.executable, "-m", "celery", "-A", "celerytasks", "worker", "-c", "2", "-l", "WARNING")
        command = pinned(cores()[1], *program)
        with self._log.open("ab") as log:
            process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def send(self, count: int, **options: Any) -> float:
        """Send tasks; returns seconds."""
        began_s = time.monotonic()
        with self.app.producer_pool.acquire(block=True) as producer:
            for _ in range(count):
                self.app.send_task("note", (time.time(),), producer=producer, ignore_result=True, **options)
        return time.monotonic() - began_s

    def done(self) -> list[float]:
        """For each task done, its seconds on the way."""
        data = self._out.read_bytes() if self._out.exists() else b""
        return [value for (value,) in struct.iter_unpack(">d", data[: len(data) // 8 * 8])]

    def wait_done(self, count: int) -> None:
        """Wait until so many tasks are done."""
        deadline_s = time.monotonic() + PATIENCE_S
        while len(self.done()) < count:
            if time.monotonic() > deadline_s:
                raise SystemExit(
                    f"bench: {len(self.done())} of {count} tasks were done in time\n{self._log.read_text()[-2000:]}"
                )
            time.sleep(0.01)

    def round(self, figures: Figures, tasks: int) -> None:
        """Measure speed and latency once."""
        self._out.unlink(missing_ok=True)
        figures.sent_per_s.append(tasks / self.send(tasks))
        with self.worker():
            first = max(1, tasks // 100)
            self.wait_done(first)
            first, began_s = len(self.done()), time.monotonic()
            self.wait_done(tasks)
            figures.done_per_s.append((tasks - first) / (time.monotonic() - began_s))
            for number in range(PINGS):
                self.send(1)
                self.wait_done(tasks + number + 1)
            on_way = sorted(self.done()[tasks:])
            figures.start_ms.append(1000 * statistics.median(on_way))
            figures.start_p99_ms.append(1000 * on_way[len(on_way) * 99 // 100])
            figures.result_ms.append(1000 * statistics.median(self._result_s(number) for number in range(PINGS)))

    def _result_s(self, number: int) -> float:
        began_s = time.monotonic()
        if self.app.send_task("double", (number,)).get(timeout=60) != 2 * number:
            raise SystemExit("bench: a wrong result")
        return time.monotonic() - began_s

    def eta(self, figures: Figures, count: int) -> None:
        """Measure the memory of a worker with tasks that are due in an hour."""
        with self.worker() as process:
            empty = _steady_rss(process.pid)
        self.send(count, countdown=ETA_S)
        with self.worker() as process:
            figures.eta_bytes.append(max(0, _steady_rss(process.pid) - empty))
            figures.eta_held.append(self._held())

    def _held(self) -> int:
        """How many tasks the worker has that are not due: Celery raises its prefetch count by one for each."""
        replies = self.app.control.inspect(timeout=30, limit=1).stats()
        if not replies:
            raise SystemExit(f"bench: the worker does not answer\n{self._log.read_text()[-2000:]}")
        [stats] = replies.values()
        return max(0, int(stats["prefetch_count"]) - PREFETCH)


def _app(urls: Urls) -> Any:
    """The application of the sender, which has the same configuration as the worker's."""
    from celery import Celery  # noqa: PLC0415 - celery reads the environment

    app = Celery("bench", broker=urls.broker, backend=urls.results, set_as_current=False)
    app.conf.task_ignore_result = False
    return app


def _rss(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _steady_rss(pid: int) -> int:
    """The memory of a process, when it no longer grows."""
    highest, since_s = 0, time.monotonic()
    while time.monotonic() - since_s < STEADY_S:
        time.sleep(0.5)
        now = _rss(pid)
        if now > highest + STEADY_BYTES:
            highest, since_s = now, time.monotonic()
    return max(highest, now)


def measure(systems: list[str], tasks: int, eta: int, rounds: int) -> dict[str, Figures]:
    """Measure all systems in turn, `rounds` times."""
    found = {system: Figures() for system in systems}
    for number in range(rounds):
        for system in systems:
            print(f"round {number + 1}: {system}", flush=True)
            with tempfile.TemporaryDirectory(prefix="disqued-bench-") as name, SYSTEMS[system]() as urls:
                bench = Bench(Path(name), urls)
                bench.round(found[system], tasks)
                if number == 0 and eta:
                    bench.eta(found[system], eta)
                bench.app.close()
    return found


def table(found: dict[str, Figures], eta: int) -> Table:
    """The figures, medians of the rounds."""
    head = ["", *found]
    median = statistics.median
    rows = [
        ["tasks sent per second", *(f"{median(figures.sent_per_s):,.0f}" for figures in found.values())],
        ["tasks done per second", *(f"{median(figures.done_per_s):,.0f}" for figures in found.values())],
        ["until a task runs, median", *(f"{median(figures.start_ms):.1f} ms" for figures in found.values())],
        ["until a task runs, p99", *(f"{median(figures.start_p99_ms):.1f} ms" for figures in found.values())],
        ["until its result is read, median", *(f"{median(figures.result_ms):.1f} ms" for figures in found.values())],
    ]
    if eta:
        memory = (f"{median(figures.eta_bytes) / 2**20:,.0f} MB" for figures in found.values())
        rows.append([f"memory of a worker while {eta:,} ETA tasks wait", *memory])
        rows.append(
            ["how many of them it has then", *(f"{median(figures.eta_held):,.0f}" for figures in found.values())]
        )
    return Table("Celery's tasks", head, rows)


def main() -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--tasks", type=int, default=5000)
    parser.add_argument("--eta", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--document", action="store_true")
    given = parser.parse_args()
    systems = given.systems.split(",")
    if unknown := [name for name in systems if name not in SYSTEMS]:
        raise SystemExit(f"bench: no system is called {unknown[0]!r}; known are: {', '.join(SYSTEMS)}")
    facts = machine.describe()
    result = table(measure(systems, given.tasks, given.eta, given.rounds), given.eta)
    print(result.as_text())
    if given.document:
        date = datetime.now(UTC).date().isoformat()
        begin = (
            f"{given.tasks:,} tasks, medians of {given.rounds} rounds in one run, {FLAVOUR}. Measured on {date}, "
            f"{facts['processor']}, disqued {facts['disqued']}, commit {facts['commit']}."
        )
        renew(PAGE, BEGIN, END, f"\n{begin}\n\n{result.as_markdown()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
