"""The seeds that the simulator runs, and the processes that share them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import date
from multiprocessing import Pool
from typing import Final, TypeVar

Result = TypeVar("Result")

PER_DAY: Final = 1000
"""The distance between the first seeds of two days."""

RUNS_PER_PROCESS: Final = 100
"""Then another process takes over, because a process keeps the nodes of its runs: the garbage collector does not look
for cycles through the classes that are declared without any."""


def parse(words: str) -> range:
    """The seeds of `7` or `0..99`. Raises ValueError for anything else."""
    first, _, last = words.partition("..")
    return range(int(first), int(last or first) + 1)


def of_day(day: date, count: int) -> range:
    """The seeds of a day, up to PER_DAY of them, which no other day has."""
    first = day.toordinal() * PER_DAY
    return range(first, first + count)


def processors() -> int:
    """How many processes can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def results(seeds: range, run: Callable[[int], Result], processes: int) -> Iterator[Result]:
    """Run the seeds in several processes, and yield the results in the order of the seeds.

    A run depends on its seed alone, so the number of processes changes no result. `run` and its results are pickled.
    """
    if processes == 1 or len(seeds) == 1:
        yield from map(run, seeds)
        return
    with Pool(min(processes, len(seeds)), maxtasksperchild=RUNS_PER_PROCESS) as pool:
        yield from pool.imap(run, seeds)
