"""How many copies the jobs of this node ask for, counted by that number.

Whoever takes nodes out of a cluster has to know the largest one: with fewer nodes no such job could be added. Jobs that
ask for no copy, on nodes that are alone the usual ones, cost one comparison.
"""

from __future__ import annotations

from mypy_extensions import i64


class Levels:
    """Jobs by their `repl`, those of 0 and 1 left out."""

    def __init__(self) -> None:
        self._jobs: list[int] = []
        """By number of copies. The last one is not 0."""

    def add(self, repl: i64) -> None:
        """A job came that asks for so many."""
        jobs = self._jobs
        while len(jobs) <= repl:
            jobs.append(0)
        jobs[repl] += 1

    def remove(self, repl: i64) -> None:
        """A job that was added is done, or gone."""
        jobs = self._jobs
        jobs[repl] -= 1
        while jobs and jobs[-1] == 0:
            jobs.pop()

    def highest(self) -> int:
        """The largest number; 1 when nobody asks for more."""
        return max(len(self._jobs) - 1, 1)
