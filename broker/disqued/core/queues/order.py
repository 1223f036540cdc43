"""The order in which the waiting jobs of a queue are delivered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mypy_extensions import i64, mypyc_attr
from sortedcontainers import SortedKeyList

from disqued.core.jobs.job import IN_LATE, IN_LINE, NOWHERE, Job
from disqued.core.jobs.joblist import JobList

BELOW_ZERO: Final = 0
ZERO: Final = 1
LOW: Final = 2
HIGH: Final = 3
BANDS: Final = ("below-0", "0", "1-to-9", "from-10")
"""The names of the bands of priorities."""


@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class Order:
    """The waiting jobs of one queue. The verbs of the lifecycle change it, and count the jobs in `Queue.length`."""

    def insert(self, job: Job) -> None:
        """Add a job that is in no queue, and set its `place`."""
        raise NotImplementedError

    def remove(self, job: Job) -> None:
        """Take out a job that was inserted, and reset its `place`."""
        raise NotImplementedError

    def first(self) -> Job | None:
        """The job to deliver next; it stays."""
        raise NotImplementedError

    def oldest(self) -> Job | None:
        """The job that was created first; it stays. Jobs that are delivered before it may be younger."""
        return self.first()

    def pop(self) -> Job | None:
        """Take out the job to deliver next."""
        job = self.first()
        if job is not None:
            self.remove(job)
        return job

    def peek(self, count: i64, after: Job | None = None) -> list[Job]:
        """Up to `count` next jobs, the next one first; for a negative count the last ones, the last one first.

        With `after`, a job that this method returned before, those that follow it in that direction.
        """
        raise NotImplementedError

    def bands(self, length: i64) -> list[int]:
        """How many of the `length` jobs in the queue have a priority of each band (`BANDS`)."""
        return [0, int(length), 0, 0]

    @property
    def has_priorities(self) -> bool:
        """Whether a job with another priority than 0 was queued."""
        return False


def _age_key(job: Job) -> tuple[int, bytes]:
    """What jobs are ordered by."""
    return (job.ctime, job.id)


def is_older(one: Job, other: Job) -> bool:
    """Whether `one` is delivered before `other` if their priorities are equal."""
    if one.ctime != other.ctime:
        return one.ctime < other.ctime
    return one.id < other.id


@mypyc_attr(acyclic=True)
class ByAge(Order):
    """Jobs ordered by (ctime, id), the oldest first.

    New jobs are the youngest and go to the end of an intrusive list. A job that comes back is mostly the oldest and
    goes to its front. Both cost the same whatever the length. Jobs that belong in between (many requeued at once, or
    imports from other nodes) go to a sorted side structure, so that nothing ever walks a long queue. The older one of
    the two first jobs is delivered next.
    """

    def __init__(self) -> None:
        self._line = JobList()
        self._late: SortedKeyList | None = None

    def insert(self, job: Job) -> None:
        """Add a job at the place that its age says."""
        line = self._line
        last = line.last
        job.place = IN_LINE
        if last is None or last.ctime < job.ctime or is_older(last, job):
            line.append(job)
            return
        first = line.first
        assert first is not None
        if is_older(job, first):
            line.prepend(job)
            return
        if self._late is None:
            self._late = SortedKeyList(key=_age_key)
        job.place = IN_LATE
        self._late.add(job)

    def remove(self, job: Job) -> None:
        """Take a job out, wherever it is."""
        where = job.place
        job.place = NOWHERE
        if where == IN_LINE:
            self._line.remove(job)
            return
        assert self._late is not None
        self._late.remove(job)
        if not self._late:
            self._late = None

    def pop(self) -> Job | None:
        """Take out the oldest job."""
        if self._late is None:
            line = self._line
            first = line.first
            if first is not None:
                first.place = NOWHERE
                line.remove(first)
            return first
        job = self.first()
        assert job is not None
        self.remove(job)
        return job

    def first(self) -> Job | None:
        """The oldest job; it stays."""
        first = self._line.first
        if self._late is None:
            return first
        late: Job = self._late[0]
        if first is None or is_older(late, first):
            return late
        return first

    def _line_after(self, after: Job | None, *, backwards: bool) -> Job | None:
        """The job of the line from which `peek` continues. It is found at once unless `after` has left the line."""
        if after is not None and after.place == IN_LINE:
            return after.queue_previous if backwards else after.queue_next
        job = self._line.last if backwards else self._line.first
        while after is not None and job is not None and is_older(after, job) == backwards:
            job = job.queue_previous if backwards else job.queue_next
        return job

    def _late_after(self, after: Job | None, *, backwards: bool) -> Iterator[Job]:
        """The jobs of the side structure from which `peek` continues."""
        if self._late is None:
            return iter(())
        if after is None:
            return reversed(self._late) if backwards else iter(self._late)
        key = _age_key(after)
        if backwards:
            younger: Iterator[Job] = self._late.irange_key(None, key, (True, False), reverse=True)
            return younger
        older: Iterator[Job] = self._late.irange_key(key, None, (False, True))
        return older

    def peek(self, count: i64, after: Job | None = None) -> list[Job]:
        """Up to `count` of the oldest jobs, oldest first; for a negative count the youngest, youngest first."""
        backwards = count < 0
        wanted: i64 = -count if backwards else count
        found: list[Job] = []
        late = self._late_after(after, backwards=backwards)
        job = self._line_after(after, backwards=backwards)
        side = next(late, None)
        while len(found) < wanted:
            if job is not None and (side is None or is_older(job, side) != backwards):
                found.append(job)
                job = job.queue_previous if backwards else job.queue_next
            elif side is not None:
                found.append(side)
                side = next(late, None)
            else:
                break
        return found
