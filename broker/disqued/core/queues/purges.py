"""The marks of purges: which jobs of a queue must go, by when they were created (QPURGE).

The settings room shares the marks between the nodes and keeps them. A mark deletes the jobs that are there when it
arrives, and it holds as long as it is kept: a job that was created before it is not queued any more, wherever it comes
from. So a node that was away, or that loads an old file, brings nothing back.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.jobs.job import DELAYED, POSTPONED, Job
from disqued.core.jobs.phases import DEAD_LETTER, DELAYED_HERE, HELD, IN_QUEUE, NO_PHASE, PHASES, phase_of


class Purges:
    """The marks that one node knows."""

    def __init__(self) -> None:
        self.some: bool = False
        """Whether there are marks."""
        self._marks: dict[bytes, list[int]] = {}
        """By queue, and by phase: jobs with a lower `ctime` are purged; 0 for no mark."""
        self._lags: dict[bytes, int] = {}
        """How far the clock of this node is behind the newest mark of a queue, in units of `ctime`, if it is."""
        self.fresh: dict[bytes, int] = {}
        """Marks that were not applied to the jobs that are here: the version of the newest one, by queue."""
        self.caught: list[Job] = []
        """Jobs that were not queued because of a mark, and must be deleted."""

    def set(self, queue: bytes, phase: int, before: int, version: int, now_ctime: int) -> None:
        """Take a mark; `now_ctime` is the time on this node. An earlier mark that catches more stays."""
        if before > now_ctime:
            self._lags[queue] = max(self._lags.get(queue, 0), before - now_ctime)
        marks = self._marks.setdefault(queue, [0] * len(PHASES))
        marks[phase] = max(marks[phase], before)
        self.fresh[queue] = max(self.fresh.get(queue, 0), version)
        self.some = True

    def unset(self, queue: bytes, phase: int) -> None:
        """Forget a mark."""
        marks = self._marks.get(queue)
        if marks is None:
            return
        marks[phase] = 0
        if not any(marks):
            del self._marks[queue]
            self._lags.pop(queue, None)
            self.some = bool(self._marks)

    def clear(self) -> None:
        """Forget all marks."""
        self._marks.clear()
        self._lags.clear()
        self.fresh.clear()
        self.some = False

    def lag(self, queue: bytes) -> i64:
        """What is added to the creation time of a new job, so that it is later than the marks of its queue.

        The node that made a mark may have a clock that is ahead.
        """
        return self._lags.get(queue, 0)

    def covers(self, job: Job) -> bool:
        """Whether a job must be deleted that waits on this node."""
        marks = self._marks.get(job.queue)
        if marks is None:
            return False
        phase = phase_of(job)
        return phase != NO_PHASE and job.ctime < marks[phase]

    def covers_held(self, job: Job) -> bool:
        """Whether a job must be deleted that waits for its parents."""
        marks = self._marks.get(job.queue)
        return marks is not None and job.ctime < marks[HELD]

    def catches(self, job: Job) -> bool:
        """Whether a job must not be queued; it is noted for deletion then."""
        marks = self._marks.get(job.queue)
        if marks is None:
            return False
        before: i64 = marks[DEAD_LETTER] if job.is_dead_letter else marks[IN_QUEUE]
        delayed_before: i64 = marks[DELAYED_HERE]
        if job.ctime >= before and not (job.ctime < delayed_before and _was_delayed(job, delayed_before)):
            return False
        self.caught.append(job)
        return True


def _was_delayed(job: Job, at_ctime: i64) -> bool:
    """Whether a job that is about to be queued waited for the end of its delay at a time, as far as this node knows."""
    if job.flags & (DELAYED | POSTPONED):
        return True
    if job.delay_s == 0 or job.nacks > 0 or job.additional_deliveries > 0:
        return False
    return job.ctime + job.delay_s * 1_000_000_000 > at_ctime
