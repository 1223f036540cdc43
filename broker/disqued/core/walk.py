"""Going through all jobs of a node, some at a time, while jobs come and go.

One pass looks at every job that stays, dict by dict of the table; what came behind the place it has reached is found by
the next pass. A pass holds the jobs of one dict, a 256th of all, and nothing else.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.job import Job
from disqued.core.table import CELLS, JobTable

_STEP: Final = 64
"""Cells of one dict."""


class Walk:
    """Where a pass through the table stands."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._at: i64 = 0
        self._cell: i64 = CELLS
        """Where the next dict begins."""

    @property
    def over(self) -> bool:
        """Whether the pass has seen all jobs."""
        return self._cell >= CELLS and self._at >= len(self._jobs)

    def begin(self) -> None:
        """Start a new pass."""
        self._cell = 0
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
            if self._cell < CELLS:
                self._cell = table.occupied_cell(int(self._cell))
            if self._cell >= CELLS:
                return None
            for cell in table.scan_cells(int(self._cell), _STEP):
                self._jobs.extend(cell)
            self._cell += _STEP

    def again(self) -> None:
        """Have the last job come once more: nothing could be done about it now."""
        if self._at > 0:
            self._at -= 1
