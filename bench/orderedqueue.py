"""What the machine of ordered queues costs: microseconds per command, bytes per waiting job, the time of a snapshot.

    python bench/orderedqueue.py [jobs]

It measures the build that Python finds: the sources, or with PYTHONPATH=build/compiled the compiled one.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from typing import Final

from disqued.orderedqueue import line
from disqued.orderedqueue.add import Add
from disqued.orderedqueue.commands import Ack, Credit
from disqued.orderedqueue.machine import Machine, restore
from disqued.orderedqueue.options import QueueOptions

JOBS: Final = 1_000_000
CYCLES: Final = 100_000
ROUNDS: Final = 3
BODY: Final = bytes(64)
CONSUMER: Final = b"n" * 40
NOW_MS: Final = 1_800_000_000_000


def cycles_us() -> dict[str, float]:
    """The best time of each command: an ADD that waits, a CREDIT that gets its job, its ACK."""
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        machine = Machine(QueueOptions(b"queue"))
        adds = [Add(300, 86_400).encode(BODY)] * CYCLES
        grants = [Credit(CONSUMER, 1).encode()] * CYCLES
        acks = [Ack([index]).encode() for index in range(1, CYCLES + 1)]
        index = 0
        for name, commands in (("ADD", adds), ("CREDIT with an assignment", grants), ("ACK", acks)):
            began = time.perf_counter()
            for command in commands:
                index += 1
                machine.apply(index, NOW_MS + index // 10, command)
            spent_us = (time.perf_counter() - began) * 1e6 / CYCLES
            best[name] = min(best.get(name, spent_us), spent_us)
        machine = Machine(QueueOptions(b"queue"))
        began = time.perf_counter()
        machine.apply(1, NOW_MS, Credit(CONSUMER, 1 << 40).encode())
        index = 1
        for command in adds:
            index += 1
            machine.apply(index, NOW_MS + index // 10, command)
            machine.apply(index + 1, NOW_MS + index // 10, Ack([index]).encode())
            index += 1
        spent_us = (time.perf_counter() - began) * 1e6 / CYCLES
        name = "ADD that is assigned at once, and ACK with its encoding"
        best[name] = min(best.get(name, spent_us), spent_us)
    return best


def fill(jobs: int, groups: int) -> Machine:
    """A machine with so many waiting jobs, of so many group keys."""
    machine = Machine(QueueOptions(b"queue"))
    add = Add(300, 86_400)
    command = add.encode(BODY)
    for index in range(1, jobs + 1):
        if groups:
            add.group = b"key-%d" % (index % groups)
            command = add.encode(BODY)
        machine.apply(index, NOW_MS + index // 10, command)
    return machine


def bytes_per_job(jobs: int, groups: int) -> float:
    """The memory of waiting jobs."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    machine = fill(jobs, groups)
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert machine.length == jobs
    return used / jobs


def main() -> None:
    """Print the figures."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else JOBS
    print(f"build: {'sources' if line.__file__.endswith('.py') else 'compiled'}")
    for name, spent_us in cycles_us().items():
        print(f"{name}: {spent_us:.2f} µs")
    machine = fill(jobs, 0)
    began = time.perf_counter()
    data = machine.snapshot()
    taken = time.perf_counter()
    restore(data)
    print(f"snapshot of {jobs:,} jobs: {len(data):,} bytes, {(taken - began) * 1e3:.0f} ms", end="")
    print(f"; restored in {(time.perf_counter() - taken) * 1e3:.0f} ms")
    few = jobs // 5
    print(f"bytes per waiting job: {bytes_per_job(few, 0):.1f}")
    print(f"bytes per waiting job, 100 jobs per group key: {bytes_per_job(few, few // 100):.1f}")
    print(f"bytes per waiting job, each with a group key of its own: {bytes_per_job(few, few):.0f}")


if __name__ == "__main__":
    main()
