"""The workloads: the comparison with other brokers, and the growth of the broker's costs.

Comparison: each workload runs on all brokers in turn, with a fresh server each, so that two figures of a ratio are
measured within seconds of each other. The order rotates from round to round, so that no broker is always first. At half
load a stall of the machine for 10 ms decides the p99 of a second. So a round has several short runs there, of all
brokers in turn, and the one with the median p99 counts: stalls in fewer than half of the runs decide nothing, and what
a broker does itself every second is in all of them.

Growth: the broker alone (and streams where they support the workload), with more and more waiting jobs, queues or
blocked clients. The cost is the server's CPU time for the whole life of a job (add, get, acknowledge). CPU time is less
sensitive to other load on the machine than elapsed time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from brokers import BROKERS, Broker, Running
from generator import Load, Measurement, offer

T = TypeVar("T")
OURS, STREAMS = BROKERS[0], BROKERS[1]
BATCH = 16  # requests pipelined, and jobs of a batch in the growth runs
PRODUCERS, WORKERS = 10, 40
CHURNS = 3  # measurements at each level; the median counts


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of all workloads; `scaled` changes the number of jobs, not their shape."""

    rounds: int = 5
    one: int = 150_000  # jobs added and got one at a time
    batch: int = 400_000  # jobs added by 16 and got by 32
    cycle: int = 100_000
    half_load_s: float = 1.0  # of each run at half load
    half_runs: int = 5  # in each round
    noise_s: float = 2.0
    memory: int = 1_000_000
    pause: int = 2_000_000
    long: int = 1_000_000  # jobs of one command
    churn: int = 160_000  # jobs that come and go at each level of a growth run
    blocked_jobs: int = 50_000
    queue_backlog: int = 100_000
    cluster: int = 60_000  # jobs of each workload on three nodes
    quorum: int = 20_000  # and on three nodes of RabbitMQ
    idle_s: float = 40.0  # longer than the longest pause between two asks
    few_rounds: int = 3  # of what takes long
    logged_one: int = 40_000  # jobs added and got one at a time under each policy of the append-only file,
    logged_batch: int = 200_000  # added by 16 and got by 32,
    synced_one: int = 15_000  # and where each group is synced
    synced_batch: int = 40_000
    load: int = 1_000_000  # jobs in the file that is loaded or rewritten
    beside: int = 200_000  # jobs of each workload beside a rewrite
    rewrite_rate: float = 20_000.0  # adds per second beside it
    rewrite_s: float = 13.0
    body_jobs: int = 200_000  # waiting jobs of each body size
    bodies: tuple[int, ...] = (16, 64, 256, 1_024, 4_096, 16_384)
    shared: tuple[int, ...] = (1, 2, 4)  # nodes behind one port
    waiting: tuple[int, ...] = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
    queues: tuple[int, ...] = (1, 10, 100, 1_000, 10_000, 100_000)
    blocked: tuple[int, ...] = (10, 100, 1_000, 10_000)

    def scaled(self, factor: float) -> Sizes:
        """The same with `factor` times as many jobs."""
        return replace(
            self,
            one=int(self.one * factor),
            batch=int(self.batch * factor),
            cycle=int(self.cycle * factor),
            memory=int(self.memory * factor),
            pause=int(self.pause * factor),
            long=int(self.long * factor),
            churn=int(self.churn * factor),
            blocked_jobs=int(self.blocked_jobs * factor),
            cluster=int(self.cluster * factor),
            quorum=int(self.quorum * factor),
            logged_one=int(self.logged_one * factor),
            logged_batch=int(self.logged_batch * factor),
            synced_one=int(self.synced_one * factor),
            synced_batch=int(self.synced_batch * factor),
            load=int(self.load * factor),
            body_jobs=int(self.body_jobs * factor),
            beside=int(self.beside * factor),
        )


QUICK = Sizes(
    rounds=1,
    one=10_000,
    batch=20_000,
    cycle=10_000,
    half_load_s=0.25,
    half_runs=3,
    noise_s=0.1,
    memory=20_000,
    pause=20_000,
    long=5_000,
    churn=6_400,
    blocked_jobs=2_000,
    queue_backlog=1_000,
    cluster=4_000,
    quorum=1_000,
    idle_s=1.0,
    few_rounds=1,
    logged_one=5_000,
    logged_batch=10_000,
    synced_one=500,
    synced_batch=2_000,
    load=20_000,
    beside=5_000,
    rewrite_rate=2_000.0,
    rewrite_s=4.0,
    body_jobs=10_000,
    bodies=(16, 1_024),
    shared=(1, 2),
    waiting=(1_000, 10_000),
    queues=(1, 1_000),
    blocked=(10, 200),
)

Rounds = dict[str, dict[str, list[Measurement]]]  # workload -> broker -> one measurement a round


def _one_at_a_time(server: Running, sizes: Sizes) -> Iterator[tuple[str, Measurement]]:
    yield "add1", offer(server, Load("add", sizes.one))
    yield "get1", offer(server, Load("get", sizes.one))


def _batched(server: Running, sizes: Sizes) -> Iterator[tuple[str, Measurement]]:
    yield "add16", offer(server, Load("add", sizes.batch, pipeline=BATCH))
    if server.broker.name != "beanstalkd":  # it hands out one job at a time
        yield "get32", offer(server, Load("get", sizes.batch, fetch=32))


def whole_cycle(sizes: Sizes) -> Load:
    """Producers, and blocked workers that get and acknowledge one job at a time."""
    return Load("cycle", sizes.cycle, connections=PRODUCERS + WORKERS, workers=WORKERS)


def _whole_cycle(server: Running, sizes: Sizes) -> Iterator[tuple[str, Measurement]]:
    yield "cycle", offer(server, whole_cycle(sizes))


Workload = Callable[[Running, Sizes], Iterator[tuple[str, Measurement]]]
WORKLOADS: tuple[Workload, ...] = (_one_at_a_time, _batched, _whole_cycle)


@dataclass(frozen=True, slots=True)
class HalfLoad:
    """A workload at half the rate of another one."""

    mode: str
    full: str  # the workload that gives the rate
    kind: str  # the latency whose p99 decides which run counts


HALF_LOADS = {"half_add": HalfLoad("add", "add1", "add"), "half_cycle": HalfLoad("cycle", "cycle", "delivery")}


def compare(brokers: tuple[Broker, ...], sizes: Sizes, say: Callable[[str], None]) -> Rounds:
    """All workloads on all brokers, `sizes.rounds` times."""
    results: Rounds = {}

    def note(name: str, broker: Broker, line: Measurement) -> None:
        results.setdefault(name, {}).setdefault(broker.name, []).append(line)
        number = len(results[name][broker.name])
        say(f"round {number}  {name:<10} {broker.name:<14} {line['jobs_per_s']:>10,.0f} jobs/s")

    for number in range(sizes.rounds):
        for workload in WORKLOADS:
            for broker in rotated(brokers, number):
                with Running(broker) as server:
                    for name, line in workload(server, sizes):
                        note(name, broker, line)
        for name, half in HALF_LOADS.items():
            lines = _half_load(half, _half_of_slowest(results[half.full]), brokers, sizes)
            for broker in brokers:
                note(name, broker, lines[broker.name])
    return results


def rotated(measured: tuple[T, ...], number: int) -> tuple[T, ...]:
    """The order of the brokers, or of what else is compared, in a round."""
    turn = number % len(measured)
    return measured[turn:] + measured[:turn]


def _half_of_slowest(measured: dict[str, list[Measurement]]) -> float:
    """Half the jobs per second of the slowest broker in the last round, the same for all."""
    return min(float(rounds[-1]["jobs_per_s"]) for rounds in measured.values()) / 2


def _half_load(half: HalfLoad, rate: float, brokers: tuple[Broker, ...], sizes: Sizes) -> dict[str, Measurement]:
    """The run with the median p99 of each broker, of several short ones in turn."""
    load = Load(half.mode, int(rate * sizes.half_load_s), rate=rate)
    lines: dict[str, list[Measurement]] = {broker.name: [] for broker in brokers}
    for number in range(sizes.half_runs):
        for broker in rotated(brokers, number):
            with Running(broker) as server:
                lines[broker.name].append(offer(server, load))
    return {
        name: sorted(runs, key=lambda line: float(line["latency_us"][half.kind]["p99"]))[len(runs) // 2]
        for name, runs in lines.items()
    }


def memory(brokers: tuple[Broker, ...], sizes: Sizes, say: Callable[[str], None]) -> dict[str, float]:
    """Bytes of RAM per waiting job with a 64-byte body, by broker."""
    results = {}
    for broker in brokers:
        with Running(broker) as server:
            before = server.rss_bytes()
            offer(server, Load("add", sizes.memory, pipeline=BATCH))
            results[broker.name] = (server.rss_bytes() - before) / sizes.memory
        say(f"memory   {broker.name:<14} {results[broker.name]:.0f} bytes for each of {sizes.memory:,} waiting jobs")
    return results


def pauses(sizes: Sizes, say: Callable[[str], None]) -> list[float]:
    """The longest reply in ms while `sizes.pause` jobs are added, one for each round."""
    results = []
    for _ in range(sizes.rounds):
        with Running(OURS) as server:
            line = offer(server, Load("add", sizes.pause, pipeline=BATCH))
            results.append(line["latency_us"]["add"]["max"] / 1000)
        say(f"longest reply while adding {sizes.pause:,} jobs: {results[-1]:.1f} ms")
    return results


def _churn(server: Running, sizes: Sizes, first: int, queues: int = 1) -> tuple[Measurement, int]:
    """The measurement with the median cost, and the number of the next new job."""
    lines = []
    for _ in range(CHURNS):
        lines.append(offer(server, Load("churn", sizes.churn, fetch=BATCH, first=first, queues=queues)))
        first += sizes.churn
    return sorted(lines, key=lambda line: float(line["server_cpu_us_per_job"]))[CHURNS // 2], first


Curve = list[dict[str, float]]  # points with "level" and "cpu_us"


def _point(level: int, line: Measurement) -> dict[str, float]:
    return {"level": level, "cpu_us": line["server_cpu_us_per_job"], "jobs_per_s": line["jobs_per_s"]}


def grow_waiting(broker: Broker, sizes: Sizes) -> Curve:
    """Cost of a job's life while more and more others wait in its queue, on one server."""
    curve = []
    added = waiting = 0
    with Running(broker) as server:
        for level in sizes.waiting:
            offer(server, Load("add", level - waiting, pipeline=BATCH, first=added))
            added, waiting = added + level - waiting, level
            line, added = _churn(server, sizes, added)
            curve.append(_point(level, line))
    return curve


def grow_queues(broker: Broker, sizes: Sizes) -> Curve:
    """Cost of a job's life with the same number of waiting jobs in more and more queues."""
    curve = []
    for level in sizes.queues:
        with Running(broker) as server:
            backlog = max(level, sizes.queue_backlog)
            offer(server, Load("add", backlog, pipeline=BATCH, queues=level))
            line, _ = _churn(server, sizes, backlog, queues=level)
            curve.append(_point(level, line))
    return curve


def grow_blocked(broker: Broker, sizes: Sizes) -> Curve:
    """Cost of a job's life with more and more waiting workers; the one that waited longest gets the job."""
    curve = []
    for level in sizes.blocked:
        lines = []
        for _ in range(CHURNS):
            with Running(broker) as server:
                load = Load("cycle", sizes.blocked_jobs, connections=level + PRODUCERS, workers=level)
                lines.append(offer(server, load))
        curve.append(_point(level, sorted(lines, key=lambda line: float(line["server_cpu_us_per_job"]))[CHURNS // 2]))
    return curve


def growth(brokers: tuple[Broker, ...], sizes: Sizes, say: Callable[[str], None]) -> dict[str, dict[str, Curve]]:
    """Every growth curve, by what grows and by broker."""
    plan: list[tuple[str, Callable[[Broker, Sizes], Curve], Broker]] = [
        ("waiting", grow_waiting, OURS),
        ("queues", grow_queues, OURS),
        ("blocked", grow_blocked, OURS),
    ]
    if STREAMS in brokers:
        plan.insert(1, ("waiting", grow_waiting, STREAMS))
    results: dict[str, dict[str, Curve]] = {}
    for what, measure, broker in plan:
        curve = measure(broker, sizes)
        results.setdefault(what, {})[broker.name] = curve
        points = ", ".join(f"{point['level']:,.0f}: {point['cpu_us']:.2f}" for point in curve)
        say(f"{what:<8} {broker.name:<14} us of CPU for a job's life at {points}")
    return results
