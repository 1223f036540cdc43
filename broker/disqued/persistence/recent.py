"""The keys of jobs that were added shortly before the node went down: who is in doubt may add again after a restart.

Nothing in the file says which jobs were added under a key, and nothing has to: the stamp in its ID tells it (`jobid`).
So all jobs that this node made in the last minute before the file ends, and that are still there, are remembered as if
they had one. Where there was none, characters stand that are random, and that no key comes to.

Nor is it known how long their windows were. They are remembered for the usual one from now on, and an add that comes
says how old a job may be that is taken for it: no window becomes longer by a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.jobs.jobid import stamp_of
from disqued.core.lifecycle.keys import DEFAULT_WINDOW_S

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState

SPAN_S: Final = 60
MAX_KEPT: Final = 100_000
_CTIMES_PER_S: Final = 1_000_000_000


class Recent:
    """The youngest jobs among those that were loaded, by the second in which they were made."""

    def __init__(self) -> None:
        self._jobs: dict[int, list[Job]] = {}
        self._seconds: list[int] = []
        """In order."""
        self.count: i64 = 0

    def note(self, job: Job, now_ms: i64) -> None:
        """A job that this node made was loaded. What the clock of now calls the future counts as now."""
        second: int = min(job.ctime // _CTIMES_PER_S, now_ms // 1000)
        newest: int = self._seconds[-1] if self._seconds else second
        if second <= newest - SPAN_S:
            return
        jobs = self._jobs.get(second)
        if jobs is None:
            jobs = self._jobs[second] = []
            self._seconds.append(second)
            self._seconds.sort()  # of a minute at most, and nearly so
        elif len(jobs) >= MAX_KEPT:
            return
        jobs.append(job)
        self.count += 1
        while self._seconds[0] <= self._seconds[-1] - SPAN_S or (self.count > MAX_KEPT and len(self._seconds) > 1):
            self.count -= len(self._jobs.pop(self._seconds.pop(0)))

    def part(self, state: NodeState, limit: i64) -> bool:
        """Remember up to `limit` of them, the youngest first; False when there are no more, or memory is short."""
        lifecycle = state.lifecycle
        while limit > 0 and self._seconds and lifecycle.memory.level() == 0:
            limit -= 1
            jobs = self._jobs[self._seconds[-1]]
            job = jobs.pop()
            if not jobs:
                self._seconds.pop()
            if lifecycle.table.get(job.id) is job and lifecycle.keys.get(stamp_of(job.id)) is None:
                lifecycle.keys.add(job.id, DEFAULT_WINDOW_S)
                lifecycle.keys.begin(job.id, job.ctime // 1_000_000, state.now_ms)
        return limit == 0
