"""The keys of jobs that were added shortly before a restart, so that a client can safely repeat an add after it.

The file does not say which jobs were added under a key. The ID does: it contains a stamp of the key (`jobid`). So all
jobs that this node created in the last minute of the file, and that still exist, are remembered as if they had a key.
The stamp of a job without a key is random, and matches no key.

The file does not say how long the windows were either. The keys are remembered for the default window, and an add says
how old a job may be that counts as the same one, so no window becomes longer by a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.jobs.codec import CTIMES_PER_S
from disqued.core.jobs.jobid import stamp_of
from disqued.core.lifecycle.keys import DEFAULT_WINDOW_S

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState

SPAN_S: Final = 60
MAX_KEPT: Final = 100_000


class Recent:
    """The newest of the loaded jobs, by the second of their creation."""

    def __init__(self) -> None:
        self._jobs: dict[int, list[Job]] = {}
        self._seconds: list[int] = []
        """The seconds, in order."""
        self.count: i64 = 0

    def note(self, job: Job, now_ms: i64) -> None:
        """Note a loaded job that this node created. A creation time in the future counts as now."""
        second: int = min(job.ctime // CTIMES_PER_S, now_ms // 1000)
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
        """Remember up to `limit` keys, the newest first; return False if none are left or memory is short."""
        lifecycle = state.lifecycle
        while limit > 0 and self._seconds and lifecycle.memory.level() == 0:
            limit -= 1
            jobs = self._jobs[self._seconds[-1]]
            job = jobs.pop()
            if not jobs:
                self._seconds.pop()
            if lifecycle.table.get(job.id) is job and lifecycle.keys.get(stamp_of(job.id)) is None:
                lifecycle.keys.add(job.id, DEFAULT_WINDOW_S)
                lifecycle.keys.begin(job.id, job.created_ms, state.now_ms)
        return limit == 0
