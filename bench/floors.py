"""The rows of the report: measured values, the brokers they are compared with, and their targets.

A floor must be met; an aim should be. Ratios are this broker divided by the other one, in the same round. Rows without
a floor are for information.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

STREAMS, LISTS, BEANSTALKD = "redis streams", "redis lists", "beanstalkd"


@dataclass(frozen=True, slots=True)
class Target:
    """What a value must reach (`floor`) and should reach (`aim`)."""

    floor: float
    aim: float
    higher_is_better: bool = True

    def met(self, value: float) -> bool:
        """Whether the value reaches the floor."""
        return value >= self.floor if self.higher_is_better else value <= self.floor


@dataclass(frozen=True, slots=True)
class Row:
    """A value of a workload and its targets relative to other brokers."""

    title: str
    workload: str
    path: tuple[str, ...]  # where the value stands in a measurement
    unit: str
    targets: dict[str, Target] = field(default_factory=dict)

    def value(self, measurement: dict[str, Any]) -> float:
        """The value in one line of the generator."""
        found: Any = measurement
        for key in self.path:
            found = found[key]
        return float(found)


def _beside(streams: tuple[float, float], beanstalkd: tuple[float, float] | None = None) -> dict[str, Target]:
    targets = {STREAMS: Target(*streams)}
    if beanstalkd is not None:
        targets[BEANSTALKD] = Target(*beanstalkd)
    return targets


_RATE = ("jobs_per_s",)
_P99_TARGET = Target(1.5, 1.1, higher_is_better=False)

RATES = (
    Row("add, one at a time", "add1", _RATE, "jobs/s", _beside((0.80, 1.0), (1.0, 1.25))),
    Row("add, pipelined by 16", "add16", _RATE, "jobs/s", _beside((0.65, 1.0), (4.0, 6.5))),
    Row("get + acknowledge, one at a time", "get1", _RATE, "jobs/s", _beside((1.05, 1.3), (1.05, 1.3))),
    Row("get + acknowledge, by 32", "get32", _RATE, "jobs/s", _beside((1.9, 3.0))),
    Row("whole cycle, 10 producers, 40 blocked workers", "cycle", _RATE, "jobs/s", _beside((1.5, 1.6), (1.05, 1.1))),
)
LATENCIES = (
    Row(
        "add one at a time, full load, p99",
        "add1",
        ("latency_us", "add", "p99"),
        "us",
        {STREAMS: _P99_TARGET, BEANSTALKD: _P99_TARGET},
    ),
    Row("add at half load, p50", "half_add", ("latency_us", "add", "p50"), "us"),
    Row("add at half load, p99", "half_add", ("latency_us", "add", "p99"), "us", {STREAMS: _P99_TARGET}),
    Row("add to blocked worker at half load, p50", "half_cycle", ("latency_us", "delivery", "p50"), "us"),
    Row("add to blocked worker at half load, p99", "half_cycle", ("latency_us", "delivery", "p99"), "us"),
)

MEMORY = Target(460, 380, higher_is_better=False)  # bytes for each waiting job
PAUSE = Target(15, 10, higher_is_better=False)  # ms, the longest reply
WAITING_GROWTH = Target(1.35, 1.15, higher_is_better=False)  # cost at the most waiting jobs over cost at the fewest

SYNCHRONOUS_COPIES = Target(0.40, 0.55)  # adds with three copies on three nodes over adds on one node, on one core
PIPELINED_COPIES = Target(0.33, 0.5)  # the same by 16: three times what a client could do that waited for each copy
ASYNC_COPIES = Target(0.22, 0.32)
AWAY_CYCLE = Target(0.95, 1.0)  # whole cycles with the workers on another node over those on one node, on one core
AWAY_DELIVERY_MS = Target(50, 5, higher_is_better=False)  # from the add to such a worker at AWAY_LOAD, p50
QUORUM_CYCLE = Target(2.0, 5.0)  # whole cycles over those of RabbitMQ's quorum queues

LOG_AGAINST_NONE = Target(0.65, 0.85)  # adds by 16 with `appendfsync everysec` over those without a file
LOG_BESIDE_STREAMS = Target(0.80, 1.1)  # and over those of a stream with the same policy
LOAD = Target(30, 10, higher_is_better=False)  # s, a million jobs from the file
REWRITE_PAUSE = Target(15, 10, higher_is_better=False)  # ms, the longest reply during a rewrite of a million jobs
BESIDE_REWRITE = Target(0.8, 0.9)  # throughput beside a rewrite over that without one
REWRITE_CPU = Target(3, 2, higher_is_better=False)  # us of CPU for each job that is rewritten

SPARK_STREAM = Target(0.3, 0.5)  # jobs per second of the Spark connector over foreachPartition with code by hand
SPARK_CONSUME = Target(0.5, 0.8)
