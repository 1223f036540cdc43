"""Going through all jobs of a node, some at a time, while jobs come and go.

One pass looks at every job that stays, dict by dict of the table; what came behind the place it has reached is found by
the next pass. A pass holds the jobs of one dict, a 256th of all, and nothing else.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.jobs.job import Job
from disqued.core.jobs.table import SHARDS, JobTable


class Walk:
    """Where a pass through the table stands."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._at: i64 = 0
        self._next: i64 = SHARDS
        """Which dict is the next."""

    @property
    def over(self) -> bool:
        """Whether the pass has seen all jobs."""
        return self._next >= SHARDS and self._at >= len(self._jobs)

    def begin(self) -> None:
        """Start a new pass."""
        self._next = 0
        self._jobs = []
        self._at = 0

    def next(self, table: JobTable) -> Job | None:
        """The next job that is still there; None at the end of the pass."""
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
        """Have the last job come once more: nothing could be done about it now."""
        if self._at > 0:
            self._at -= 1
