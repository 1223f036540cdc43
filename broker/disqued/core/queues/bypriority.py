"""The order of Disque queues: jobs with a higher priority first, and jobs with the same priority by age.

Most queues have only jobs of priority 0, and those are in the fields of the order itself, so such a queue costs no more
than an order by age. Each other priority in use has a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mypy_extensions import i64, mypyc_attr
from sortedcontainers import SortedDict

from disqued.core.jobs.job import Job
from disqued.core.queues.order import BELOW_ZERO, HIGH, LOW, ZERO, ByAge, is_older

_HIGH: Final = 10
"""The least priority of the band of high ones."""
_KEPT_LINES: Final = 4
"""So many empty lines stay, because the next job of their priority mostly follows soon."""
_OLDEST_LINES: Final = 64
"""So many lines are searched for the oldest job, from the lowest priority up: jobs wait there for longest."""


@mypyc_attr(acyclic=True)
class PriorityLine(ByAge):
    """The jobs of one priority, oldest first."""

    def __init__(self, priority: i64) -> None:
        super().__init__()
        self.priority: i64 = priority
        self.band: i64 = _band(priority)


def _band(priority: i64) -> i64:
    if priority < 0:
        return BELOW_ZERO
    return HIGH if priority >= _HIGH else LOW


@mypyc_attr(acyclic=True)
class PriorityLines:
    """The jobs of a queue whose priority is not 0, in one line for each priority."""

    def __init__(self) -> None:
        self._lines = SortedDict()
        """`PriorityLine` by priority times -1, so that the line to deliver from comes first."""
        self._empty: i64 = 0
        """How many of the lines have no job."""
        self.first_line: PriorityLine | None = None
        """The line with the job to deliver next."""
        self.length: i64 = 0
        self.bands: list[int] = [0, 0, 0, 0]
        """The number of jobs, by band."""

    def insert(self, job: Job, priority: i64) -> None:
        """Add a job that is in no queue."""
        line: PriorityLine | None = self._lines.get(-priority)
        if line is None:
            line = PriorityLine(priority)
            self._lines[-priority] = line
        elif line.first() is None:
            self._empty -= 1
        line.insert(job)
        self.length += 1
        self.bands[line.band] += 1
        first_line = self.first_line
        if first_line is None or first_line.priority < priority:
            self.first_line = line

    def remove(self, job: Job, priority: i64) -> None:
        """Take out a job that was inserted."""
        line: PriorityLine = self._lines[-priority]
        line.remove(job)
        self._removed(line)

    def pop(self, line: PriorityLine) -> Job | None:
        """Take out the first job of a line that has one."""
        job = line.pop()
        self._removed(line)
        return job

    def _removed(self, line: PriorityLine) -> None:
        """A job was taken out of a line: count it, and keep or drop the line if it is empty now."""
        self.length -= 1
        self.bands[line.band] -= 1
        if line.first() is not None:
            return
        if self._empty < _KEPT_LINES:
            self._empty += 1
        else:
            del self._lines[-line.priority]
        if line is self.first_line:
            self.first_line = self._find_first_line() if self.length > 0 else None

    def _find_first_line(self) -> PriorityLine | None:
        """The first line with a job. Only few lines are empty, so it is found soon."""
        for key in self._lines:
            line: PriorityLine = self._lines[key]
            if line.first() is not None:
                return line
        return None

    def from_priority(self, priority: i64, *, backwards: bool) -> Iterator[PriorityLine]:
        """The lines from this priority on, in the order of delivery or against it."""
        if backwards:
            return map(self._lines.__getitem__, self._lines.irange(None, -priority, reverse=True))
        return map(self._lines.__getitem__, self._lines.irange(-priority))

    def in_order(self, *, backwards: bool) -> Iterator[PriorityLine]:
        """All lines, in the order of delivery or against it."""
        return map(self._lines.__getitem__, reversed(self._lines) if backwards else iter(self._lines))


@mypyc_attr(acyclic=True)
class ByPriority(ByAge):
    """Jobs ordered by (priority, highest first; ctime; id). The fields of `ByAge` have the jobs of priority 0."""

    def __init__(self) -> None:
        super().__init__()
        self._others: PriorityLines | None = None
        """The jobs of other priorities; None until the queue had one."""

    def insert(self, job: Job) -> None:
        """Add a job at the place that its priority and its age say."""
        extra = job.extra
        if extra is None or extra.priority == 0:
            super().insert(job)
            return
        others = self._others
        if others is None:
            others = PriorityLines()
            self._others = others
        others.insert(job, extra.priority)

    def remove(self, job: Job) -> None:
        """Take a job out, wherever it is."""
        extra = job.extra
        if extra is None or extra.priority == 0:
            super().remove(job)
            return
        assert self._others is not None
        self._others.remove(job, extra.priority)

    def first(self) -> Job | None:
        """The oldest job of the highest priority; it stays."""
        others = self._others
        if others is None or others.first_line is None:
            return super().first()
        line = others.first_line
        plain = super().first() if line.priority < 0 else None
        return line.first() if plain is None else plain

    def pop(self) -> Job | None:
        """Take out the oldest job of the highest priority."""
        others = self._others
        if others is None:
            return super().pop()
        line = others.first_line
        if line is None or (line.priority < 0 and super().first() is not None):
            return super().pop()
        return others.pop(line)

    def oldest(self) -> Job | None:
        """The oldest job of any priority. If more than 64 are in use, only the lowest 64 and priority 0 count."""
        oldest = super().first()
        others = self._others
        if others is None:
            return oldest
        left: i64 = _OLDEST_LINES
        for line in others.in_order(backwards=True):
            job = line.first()
            if job is not None and (oldest is None or is_older(job, oldest)):
                oldest = job
            left -= 1
            if left == 0:
                break
        return oldest

    def bands(self, length: i64) -> list[int]:
        """How many of the `length` jobs have a priority of each band."""
        others = self._others
        if others is None:
            return super().bands(length)
        found = list(others.bands)
        found[ZERO] = int(length - others.length)
        return found

    @property
    def has_priorities(self) -> bool:
        """Whether a job with another priority than 0 was queued."""
        return self._others is not None

    def peek(self, count: i64, after: Job | None = None) -> list[Job]:
        """Up to `count` jobs in the order of delivery; for a negative count the last ones, the last one first."""
        others = self._others
        if others is None or others.length == 0:
            return super().peek(count, after)
        backwards = count < 0
        sign: i64 = -1 if backwards else 1
        left: i64 = count * sign
        start: i64 = 0
        if after is not None and after.extra is not None:
            start = after.extra.priority
        lines = (
            others.in_order(backwards=backwards) if after is None else others.from_priority(start, backwards=backwards)
        )
        zero_is_left = after is None or start == 0 or (start > 0) != backwards
        found: list[Job] = []
        for line in lines:
            if zero_is_left and (line.priority < 0) != backwards:
                zero_is_left = False
                found += super().peek(sign * (left - len(found)), after if start == 0 else None)
            if len(found) >= left:
                return found
            found += line.peek(sign * (left - len(found)), after if line.priority == start else None)
        if zero_is_left and len(found) < left:
            found += super().peek(sign * (left - len(found)), after if start == 0 else None)
        return found
