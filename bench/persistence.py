"""The cost of the append-only file: throughput under each policy, loading, rewrites, and logged copies.

Every measurement alternates with one without a file or of Redis (streams, the same policy). Neither broker rewrites its
file unless the benchmark asks, so that no round includes a rewrite by accident. Files are read from the page cache
after a kill, as after a crash of the process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from brokers import LOG_POLICIES, Broker, Running, logging
from clusters import NODES, Disqued
from generator import Load, Measurement, offer
from workloads import BATCH, OURS, PRODUCERS, STREAMS, WORKERS, Sizes

NONE = "none"
POLICIES = (NONE, *LOG_POLICIES)
WINDOW_MS = 100  # latency beside a rewrite is shown by windows of this length
BEFORE_S = 2.0
"""How long adds run before the rewrite starts, and are measured after it."""
SETTLE_S = 0.5
"""The time that the generator needs before its first add."""
POLL_S = 0.02
REPEAT_S = 0.1
"""How often the benchmark checks that a rewrite is still running beside a load."""
REPLICATED = f"REPLICATE {NODES}"
BACKLOG_QUEUES = 2  # neither of them is the queue of the load
SYNCED_S = 1.5
"""What was written is synced then."""

Say = Callable[[str], None]
Policies = dict[str, dict[str, dict[str, list[Measurement]]]]  # workload -> policy -> broker -> one for each round


def _sides(brokers: tuple[Broker, ...]) -> tuple[Broker, ...]:
    """The brokers that have an append-only file."""
    return tuple(broker for broker in brokers if broker in {OURS, STREAMS})


def _under(policy: str, broker: Broker) -> Broker:
    return broker if policy == NONE else logging(broker, policy)


def _one_at_a_time(server: Running, sizes: Sizes, policy: str) -> Iterator[tuple[str, Measurement]]:
    jobs = sizes.synced_one if policy == "always" else sizes.logged_one
    yield "add1", offer(server, Load("add", jobs))
    yield "get1", offer(server, Load("get", jobs))


def _batched(server: Running, sizes: Sizes, policy: str) -> Iterator[tuple[str, Measurement]]:
    jobs = sizes.synced_batch if policy == "always" else sizes.logged_batch
    yield "add16", offer(server, Load("add", jobs, pipeline=BATCH))
    yield "get32", offer(server, Load("get", jobs, fetch=32))


def policies(brokers: tuple[Broker, ...], sizes: Sizes, say: Say) -> Policies:
    """Adding, and fetching with acknowledgement, under each policy, `sizes.rounds` times."""
    sides = _sides(brokers)
    results: Policies = {}
    for number in range(sizes.rounds):
        turn = number % len(sides)
        for workload in (_one_at_a_time, _batched):
            for policy in POLICIES:
                for broker in sides[turn:] + sides[:turn]:
                    with Running(_under(policy, broker)) as server:
                        for name, line in workload(server, sizes, policy):
                            results.setdefault(name, {}).setdefault(policy, {}).setdefault(broker.name, []).append(line)
                            rate = f"{line['jobs_per_s']:>10,.0f} jobs/s"
                            say(f"round {number + 1}  {name:<6} log {policy:<9} {broker.name:<14} {rate}")
    return results


def _wait_for_writes(server: Running) -> None:
    """Wait until everything is written: with `everysec`, Redis replies before it writes while a sync runs."""
    while "aof_buffer_length:0" not in server.ask("INFO persistence"):
        time.sleep(POLL_S)


def _held(server: Running) -> int:
    """How many jobs, or entries of the stream, it holds."""
    if server.broker.protocol == "stream":
        return int(server.ask("XLEN q"))
    fields = dict(line.partition(":")[::2] for line in server.ask("INFO jobs").split())
    return int(fields["registered_jobs"])


def loads(brokers: tuple[Broker, ...], sizes: Sizes, say: Say) -> dict[str, list[dict[str, float]]]:
    """How long a killed broker takes to serve again with `sizes.load` waiting jobs in its file, by broker."""
    results: dict[str, list[dict[str, float]]] = {}
    for _ in range(sizes.few_rounds):
        for broker in _sides(brokers):
            with Running(logging(broker, "everysec")) as server:
                offer(server, Load("add", sizes.load, pipeline=BATCH))
                _wait_for_writes(server)
                size = server.file_bytes()
                seconds = server.restart()
                cpu_s = server.cpu_s()
                if _held(server) != sizes.load:
                    raise SystemExit(f"bench: {broker.name} lost jobs: {_held(server)} of {sizes.load} came back")
            results.setdefault(broker.name, []).append({"seconds": seconds, "cpu_s": cpu_s, "file_bytes": size})
            jobs = f"{sizes.load:,} jobs of {size / sizes.load:.0f} bytes"
            say(f"load     {broker.name:<14} {seconds:.1f} s for {jobs}")
    return results


def _rewrites(server: Running) -> bool:
    status = server.ask("INFO persistence")
    return "aof_rewrite_in_progress:1" in status or "aof_rewrite_scheduled:1" in status


def _begin_rewrite(server: Running) -> None:
    answer = server.ask("BGREWRITEAOF")
    if not answer.startswith("Background"):
        raise SystemExit(f"bench: {server.broker.name} does not rewrite its file: {answer}")


def wait_for_rewrite(server: Running) -> None:
    """Wait until no rewrite is running."""
    while _rewrites(server):
        time.sleep(POLL_S)


def _adding_beside_a_rewrite(server: Running, sizes: Sizes) -> tuple[Measurement, float, float]:
    """Adds at a steady rate during a rewrite; also returns when it began and ended, on the monotonic clock."""
    jobs = int(sizes.rewrite_rate * sizes.rewrite_s)
    load = Load("add", jobs, rate=sizes.rewrite_rate, first=sizes.load, window_ms=WINDOW_MS)
    lines: list[Measurement] = []
    adding = threading.Thread(target=lambda: lines.append(offer(server, load)))
    adding.start()
    time.sleep(SETTLE_S + BEFORE_S)
    began = time.monotonic()
    _begin_rewrite(server)
    wait_for_rewrite(server)
    ended = time.monotonic()
    adding.join()
    if not lines:
        raise SystemExit(f"bench: no measurement of {server.broker.name} beside a rewrite")
    return lines[0], began, ended


def _phase(windows: list[list[float]]) -> dict[str, float]:
    """Medians over windows of p50 and p99, and the longest reply in any, in ms."""
    busy = [window for window in windows if window[0] > 0]
    if not busy:
        return {}
    p50, p99, longest = ([window[column] / 1000 for window in busy] for column in (1, 2, 3))
    return {"p50": median(p50), "p99": median(p99), "worst_p99": max(p99), "max": max(longest)}


def rewrites(brokers: tuple[Broker, ...], sizes: Sizes, say: Say) -> dict[str, list[dict[str, Any]]]:
    """Latency of adds before, during and after a rewrite, with `sizes.load` jobs in memory."""
    results: dict[str, list[dict[str, Any]]] = {}
    for _ in range(sizes.few_rounds):
        for broker in _sides(brokers):
            with Running(logging(broker, "everysec")) as server:
                offer(server, Load("add", sizes.load, pipeline=BATCH))
                line, began, ended = _adding_beside_a_rewrite(server, sizes)
            start = line["start_ns"] / 1e9
            windows = line["windows"]
            first, last = (int((moment - start) * 1000 // WINDOW_MS) for moment in (began, ended))
            found: dict[str, Any] = {
                "seconds": ended - began,
                "began_s": began - start,
                "windows": windows,
                "before": _phase(windows[:first]),
                "during": _phase(windows[first : last + 1]),
                "after": _phase(windows[last + 1 :]),
            }
            results.setdefault(broker.name, []).append(found)
            longest = found["during"].get("max", 0.0)
            say(f"rewrite  {broker.name:<14} {ended - began:.1f} s, longest reply to an add meanwhile {longest:.1f} ms")
    return results


def _rewritten_at_rest(server: Running, jobs: int) -> float:
    """CPU time of a rewrite without other load, us for each of the `jobs`."""
    time.sleep(SYNCED_S)
    before_s = server.cpu_s()
    _begin_rewrite(server)
    wait_for_rewrite(server)
    return (server.cpu_s() - before_s) / jobs * 1e6


@contextmanager
def _rewriting(server: Running) -> Iterator[None]:
    """Meanwhile, rewrite the file one time after the other."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(REPEAT_S):
            if not _rewrites(server):
                _begin_rewrite(server)

    _begin_rewrite(server)
    repeating = threading.Thread(target=repeat)
    repeating.start()
    yield
    over.set()
    repeating.join()
    wait_for_rewrite(server)


def rewrite_cost(sizes: Sizes, say: Say) -> dict[str, Any]:
    """What a rewrite of `sizes.load` waiting jobs costs, `sizes.rounds` times.

    `rates`: the throughput beside a rewrite over that without one, by workload. `cpu_us`: CPU time for each job that
    is rewritten at rest.
    """
    loads = {
        "add16": Load("add", sizes.beside, pipeline=BATCH),
        "get32": Load("get", sizes.beside, fetch=32),
        "cycle": Load("cycle", sizes.beside // 4, connections=PRODUCERS + WORKERS, workers=WORKERS),
    }
    rates: dict[str, list[float]] = {name: [] for name in loads}
    cpu_us: list[float] = []
    with Running(logging(OURS, "everysec")) as server:
        offer(server, Load("add", sizes.load, pipeline=BATCH, queues=BACKLOG_QUEUES))
        for number in range(sizes.rounds):
            cpu_us.append(_rewritten_at_rest(server, sizes.load))
            alone = [float(offer(server, load)["jobs_per_s"]) for load in loads.values()]
            with _rewriting(server):
                beside = [float(offer(server, load)["jobs_per_s"]) for load in loads.values()]
            for name, slow, fast in zip(loads, beside, alone, strict=True):
                rates[name].append(slow / fast)
            shown = ", ".join(f"{name} x{found[-1]:.2f}" for name, found in rates.items())
            say(f"round {number + 1}  beside a rewrite {shown}; {cpu_us[-1]:.2f} us of CPU for a job at rest")
    return {"rates": rates, "cpu_us": cpu_us}


def _replicated(broker: Broker, sizes: Sizes) -> Iterator[tuple[str, Measurement]]:
    jobs = sizes.cluster // 2
    for name, pipeline in (("add1 r3", 1), ("add16 r3", BATCH)):
        with Disqued(broker) as nodes:
            line = offer(nodes, Load("add", jobs, pipeline=pipeline, add_options=REPLICATED))
            line["seconds"] += nodes.wait_for_copies(jobs)
            line["jobs_per_s"] = jobs / line["seconds"]
            yield name, line
    with Disqued(broker) as nodes:
        connections = PRODUCERS + WORKERS
        load = Load("cycle", jobs, connections=connections, workers=WORKERS, add_options=REPLICATED)
        yield "cycle r3", offer(nodes, load)


def replicated(sizes: Sizes, say: Say) -> dict[str, dict[str, list[Measurement]]]:
    """Three nodes with three copies of each job, without and with the file, `sizes.few_rounds` times."""
    results: dict[str, dict[str, list[Measurement]]] = {}
    for number in range(sizes.few_rounds):
        for policy in (NONE, "everysec"):
            for name, line in _replicated(_under(policy, OURS), sizes):
                results.setdefault(name, {}).setdefault(policy, []).append(line)
                say(f"round {number + 1}  {name:<9} log {policy:<9} {line['jobs_per_s']:>10,.0f} jobs/s")
    return results
