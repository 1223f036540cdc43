"""Counts the jobs of this node by their REPLICATE.

Before nodes leave a cluster, the largest number in use must be known: with fewer nodes no such job could be added. A
job that asks for no copy, the usual case on a single node, costs one comparison.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.telemetry.counter import Count


class ReplicationCounts:
    """Jobs by their `repl`, without those of 0 and 1."""

    def __init__(self) -> None:
        self._jobs: list[Count] = []
        """Number of jobs, by `repl`. The last one is not 0."""

    def add(self, repl: i64) -> None:
        """Count a job."""
        jobs = self._jobs
        while len(jobs) <= repl:
            jobs.append(Count())
        jobs[repl].value += 1

    def remove(self, repl: i64) -> None:
        """Uncount a job that was counted."""
        jobs = self._jobs
        jobs[repl].value -= 1
        while jobs and jobs[-1].value == 0:
            jobs.pop()

    def highest(self) -> int:
        """The largest `repl` in use, at least 1."""
        return max(len(self._jobs) - 1, 1)
