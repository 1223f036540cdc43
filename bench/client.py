"""Measures the Python client beside code by hand with redis-py, on one node and with the producer on another node.

    PYTHONPATH=build/compiled python bench/client.py             two and a half minutes; prints tables
    python bench/client.py --quick                               some seconds, to check that everything works

Each round starts a new broker, pinned to one core as in `run.py`; the client uses the other one. Both sides add the
same jobs in pipelines, and fetch and acknowledge them in batches. Compare the ratios: Python clients are the limit
here, not the broker. With three nodes, the load generator adds the jobs at one node while a consumer, whose handler
does nothing, starts at another one: it stays there, or moves to where the jobs come from after two seconds.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any
from unittest.mock import patch

import redis

from brokers import Running
from clusters import Disqued
from disqued.client import Client, Job
from disqued.client.locality import Locality
from generator import Load, compile_generator, offer
from tables import Table, number
from workloads import OURS

BODY = b"x" * 64
PIPELINE = 128
FETCH = 256
FULL = {"rounds": 5, "jobs": 100_000, "away": 75_000, "rate": 15_000.0}
QUICK = {"rounds": 1, "jobs": 5_000, "away": 20_000, "rate": 5_000.0}

Seconds = dict[str, list[float]]


def _by_hand(port: int) -> Any:
    return redis.Redis(port=port)


def _add_by_hand(port: int, jobs: int) -> float:
    client = _by_hand(port)
    for _ in range(jobs // PIPELINE):
        pipeline = client.pipeline(transaction=False)
        for _ in range(PIPELINE):
            pipeline.execute_command("ADDJOB", "bench", BODY, 0, "RETRY", 300)
        pipeline.execute()
    return time.perf_counter()


def _add(port: int, jobs: int) -> float:
    with Client([f"127.0.0.1:{port}"]) as client:
        results = client.add_many("bench", (BODY for _ in range(jobs // PIPELINE * PIPELINE)), retry_s=300)
    if not all(isinstance(result, str) for result in results):
        raise SystemExit(f"bench: not all jobs were added: {results[0]}")
    return time.perf_counter()


def _take_by_hand(port: int, jobs: int) -> float:
    client = _by_hand(port)
    taken = 0
    while taken < jobs // PIPELINE * PIPELINE:
        found = client.execute_command("GETJOB", "TIMEOUT", 1000, "COUNT", FETCH, "FROM", "bench")
        client.execute_command("ACKJOB", *(job[1] for job in found))
        taken += len(found)
    return time.perf_counter()


def _take(port: int, jobs: int) -> float:
    taken = 0
    with Client([f"127.0.0.1:{port}"]) as client:
        while taken < jobs // PIPELINE * PIPELINE:
            found = client.get("bench", count=FETCH, timeout_ms=1000)
            client.ack(*(job.id for job in found))
            taken += len(found)
    return time.perf_counter()


def _consume(port: int, jobs: int) -> float:
    with Client([f"127.0.0.1:{port}"]) as client:
        return _run_consumer(client, "bench", jobs // PIPELINE * PIPELINE)


def _run_consumer(client: Client, queue: str, jobs: int) -> float:
    """Run a consumer for so many jobs; returns when the last handler ran."""
    left = iter(range(jobs - 1))
    ended_s: list[float] = []

    def handler(_: Job) -> None:
        if next(left, None) is None:
            ended_s.append(time.perf_counter())
            consumer.request_stop()

    consumer = client.consumer(queue, handler, prefetch=FETCH)
    consumer.run()
    return ended_s[0]


ADDING: dict[str, Callable[[int, int], float]] = {
    "add by 128, redis-py by hand": _add_by_hand,
    "add by 128, add_many": _add,
}
TAKING: dict[str, Callable[[int, int], float]] = {
    "get + ack by 256, redis-py by hand": _take_by_hand,
    "get + ack by 256, get and ack": _take,
    "get + ack, consumer": _consume,
}


def _spent(work: Callable[[int, int], float], port: int, jobs: int) -> tuple[float, float]:
    """Seconds, and CPU time of this process in seconds."""
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    ended_s = work(port, jobs)
    return ended_s - began_s, time.process_time() - began_cpu_s


def _one_node(jobs: int) -> Iterator[tuple[str, float, float]]:
    """Seconds and CPU time of each side, on new nodes in turn."""
    for name, add in ADDING.items():
        with Running(OURS) as server:
            yield name, *_spent(add, server.port, jobs)
    for name, take in TAKING.items():
        with Running(OURS) as server:
            _add_by_hand(server.port, jobs)
            yield name, *_spent(take, server.port, jobs)


class _Staying(Locality):
    """The decision of a consumer that never moves."""

    def fetched(self, *_: object) -> None:
        """Stay."""


def _away(jobs: int, rate: float) -> Iterator[tuple[str, float]]:
    """CPU us of all nodes for a job that is added at one node, with a consumer that begins at another one."""
    for name, locality in (("stays", _Staying), ("moves", Locality)):
        with Disqued() as nodes, patch("disqued.client.consuming.Locality", locality):
            load = Load("add", jobs, rate=rate, add_options="REPLICATE 1 RETRY 300")
            adding = threading.Thread(target=offer, args=(nodes, load))
            before = sum(node.cpu_s() for node in nodes.nodes)
            adding.start()
            with Client([f"127.0.0.1:{nodes.other_port}"]) as client:
                _run_consumer(client, "q", jobs)
            adding.join()
            nodes.wait_for_copies(0)
            yield f"consumer {name}", (sum(node.cpu_s() for node in nodes.nodes) - before) / jobs * 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="client", description="Compare the Python client with code by hand.")
    parser.add_argument("--quick", action="store_true", help="few jobs, one round")
    sizes: dict[str, Any] = QUICK if parser.parse_args().quick else FULL
    compile_generator()
    seconds: Seconds = {}
    cpu: Seconds = {}
    costs: Seconds = {}
    for _ in range(sizes["rounds"]):
        for name, spent, used in _one_node(sizes["jobs"]):
            seconds.setdefault(name, []).append(spent)
            cpu.setdefault(name, []).append(used / sizes["jobs"] * 1e6)
            print(f"{name:<40} {sizes['jobs'] / spent:>10,.0f} jobs/s, {cpu[name][-1]:.1f} us of CPU for a job")
        for name, spent in _away(sizes["away"], sizes["rate"]):
            costs.setdefault(name, []).append(spent)
            print(f"{name:<40} {spent:.1f} us of CPU of three nodes for a job", flush=True)
    rows = []
    for sides in (ADDING, TAKING):
        by_hand = seconds[next(iter(sides))]
        for name in sides:
            ratios = [hand / ours for hand, ours in zip(by_hand, seconds[name], strict=True)]
            rate = number(sizes["jobs"] / median(seconds[name]))
            rows.append(
                [name, rate, f"x{median(ratios):.2f} [{min(ratios):.2f}-{max(ratios):.2f}]", f"{median(cpu[name]):.1f}"]
            )
    head = ["what", "jobs/s", "beside by hand", "CPU of the client for a job, us"]
    print(Table("Jobs per second of one client", head, rows).as_text(), end="\n\n")
    rows = [[name, f"{median(us):.1f} [{min(us):.1f}-{max(us):.1f}]"] for name, us in costs.items()]
    title = f"CPU of three nodes for a job that is added at another node, {sizes['rate']:,.0f} jobs/s, us"
    print(Table(title, ["what", "us"], rows).as_text())


if __name__ == "__main__":
    main()
