"""Iterates over all jobs of a node, a few at a time, while jobs are added and removed.

A pass returns each job that stays, one dict of the table after the other. A job that is added to a dict which was
already visited is found by the next pass. A pass holds the jobs of one dict, a 256th of all.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.jobs.job import Job
from disqued.core.jobs.table import SHARDS, JobTable


class Walk:
    """A pass through the table, and its position."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._at: i64 = 0
        self._next: i64 = SHARDS
        """The number of the next dict."""

    @property
    def over(self) -> bool:
        """Whether the pass has returned all jobs."""
        return self._next >= SHARDS and self._at >= len(self._jobs)

    def begin(self) -> None:
        """Start a new pass."""
        self._next = 0
        self._jobs = []
        self._at = 0

    def next(self, table: JobTable) -> Job | None:
        """The next job that is still registered; None at the end of the pass."""
        while True:
            while self._at < len(self._jobs):
                job = self._jobs[self._at]
                self._at += 1
                if table.get(job.id) is job:
                    return job
            self._jobs = []
            self._at = 0
            if self._next >= SHARDS:
                return None
            self._jobs = table.jobs_of(self._next)
            self._next += 1

    def again(self) -> None:
        """Return the last job once more: the caller could not process it yet."""
        if self._at > 0:
            self._at -= 1
