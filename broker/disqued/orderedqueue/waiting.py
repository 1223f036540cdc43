"""The jobs that wait to be assigned, and which of them is next: the one with the lowest index that may be assigned.

Jobs are in up to four places: rows of jobs without a group key; rows of jobs with one, whose keys say which is next;
jobs that came back, sorted by index, without and with a group key. In a SINGLE queue, a job that came back and waits
for a delay holds back all jobs with a greater index.
"""

from __future__ import annotations

from heapq import merge
from itertools import islice

from mypy_extensions import i64
from sortedcontainers import SortedList

from disqued.orderedqueue.groups import Groups
from disqued.orderedqueue.job import LEASED, READY, Job, Profile, Profiles
from disqued.orderedqueue.line import Line


class Waiting:
    """The waiting jobs of a queue."""

    def __init__(self, *, single: bool) -> None:
        self._single = single
        self.groups = Groups()
        self.profiles = Profiles(self.groups)
        self.plain = Line(self.profiles)
        """Jobs without a group key that nobody had."""
        self.grouped = Line(self.profiles)
        """Jobs with a group key that nobody had."""
        self.jobs: dict[int, Job] = {}
        """All jobs of the queue that have objects, waiting or not, by index."""
        self._returned = SortedList()
        """The indexes of waiting jobs without a group key that have objects."""
        self._returned_grouped = SortedList()
        """The same with a group key."""
        self._first_returned: i64 = 0
        """The first of `_returned`; 0 if there is none."""
        self.held = SortedList()
        """SINGLE: the indexes of jobs that hold back later ones."""
        self.count: i64 = 0
        self.body_bytes: i64 = 0
        self.dead: i64 = 0
        """How many of them are dead letters."""

    def append(self, index: i64, created_ms: i64, profile: Profile, size: i64) -> None:
        """Add a new job behind all others."""
        group = profile.group
        if group is None:
            self.plain.append(index, created_ms, profile, size)
        else:
            self.grouped.append(index, created_ms, profile, size)
            group.insert(index)
            self.groups.refresh(group)
        self._count(1, size, profile)

    def insert(self, job: Job) -> None:
        """Put a job that has an object at the place of its index."""
        job.state = READY
        job.until_ms = 0
        index = job.index
        group = job.profile.group
        if group is None:
            self._returned.add(index)
            if self._first_returned == 0 or index < self._first_returned:
                self._first_returned = index
        else:
            self._returned_grouped.add(index)
            group.insert(index)
            self.groups.refresh(group)
        self._count(1, job.size, job.profile)

    def remove(self, job: Job) -> None:
        """Take out a waiting job, wherever it is."""
        index = job.index
        group = job.profile.group
        if group is None:
            if job.packed:
                self.plain.remove(index)
            else:
                self._remove_returned(index)
        else:
            if job.packed:
                self.grouped.remove(index)
            else:
                self._returned_grouped.remove(index)
            group.remove(index)
            self.groups.refresh(group)
        self._count(-1, job.size, job.profile)

    def _remove_returned(self, index: i64) -> None:
        self._returned.remove(index)
        if index == self._first_returned:
            self._first_returned = self._returned[0] if self._returned else 0

    def _count(self, change: i64, size: i64, profile: Profile) -> None:
        self.count += change
        self.body_bytes += change * size
        if profile.dead:
            self.dead += change

    def take(self) -> Job | None:
        """Take out the next job; None if none may be assigned now."""
        first = self.plain.first
        returned = self._first_returned
        grouped = self.groups.first
        if returned > 0 and (first == 0 or returned < first):
            first = returned
        if grouped > 0 and (first == 0 or grouped < first):
            first = grouped
        if first == 0 or (self._single and self.held and i64(self.held[0]) < first):
            return None
        if first == grouped:
            return self._take_grouped(first)
        if first == returned:
            self._remove_returned(first)
            job = self.jobs[first]
        else:
            job = self.plain.pop()
            self.jobs[first] = job
        self._count(-1, job.size, job.profile)
        return job

    def _take_grouped(self, index: i64) -> Job:
        found = self.jobs.get(int(index))
        if found is None:
            found = self.grouped.find(index)
            assert found is not None
            self.grouped.remove(index)
            self.jobs[int(index)] = found
        else:
            self._returned_grouped.remove(index)
        group = found.profile.group
        assert group is not None
        group.remove(index)
        self.groups.refresh(group)
        self._count(-1, found.size, found.profile)
        return found

    def find(self, index: i64) -> Job | None:
        """The job with this index, waiting or not; None if there is none. A packed job is a copy (`Job.packed`)."""
        job = self.jobs.get(int(index))
        if job is not None:
            return job
        job = self.plain.find(index)
        if job is None:
            job = self.grouped.find(index)
            if job is None:
                return None
        job.packed = True
        return job

    def set_busy(self, job: Job) -> None:
        """A consumer has a job: others with its group key wait."""
        group = job.profile.group
        if group is not None:
            group.busy = job.index
            self.groups.refresh(group)

    def set_free(self, job: Job) -> None:
        """A consumer does not have a job any more."""
        group = job.profile.group
        if group is not None:
            group.busy = 0
            self.groups.refresh(group)

    def hold(self, job: Job) -> None:
        """Have later jobs wait for the end of this job's delay, if the order demands it."""
        group = job.profile.group
        if self._single:
            self.held.add(job.index)
        if group is not None:
            group.hold(job.index)
            self.groups.refresh(group)
        job.holds_back = self._single or group is not None

    def unhold(self, job: Job) -> None:
        """Later jobs need not wait for a job that was held."""
        if not job.holds_back:
            return
        job.holds_back = False
        if self._single:
            self.held.remove(job.index)
        group = job.profile.group
        if group is not None:
            group.unhold(job.index)
            self.groups.refresh(group)

    def oldest(self) -> i64:
        """The index of the first waiting job, whether it may be assigned or not; 0 if there is none."""
        first: i64 = 0
        if self._returned_grouped:
            first = self._returned_grouped[0]
        for index in (self.plain.first, self.grouped.first, self._first_returned):
            if index > 0 and (first == 0 or index < first):
                first = index
        return first

    def after(self, index: i64, most: i64) -> list[int]:
        """The indexes of the first waiting jobs behind an index, at most so many, in order."""
        found = merge(
            self.plain.after(index, most),
            self.grouped.after(index, most),
            self._returned.irange(index + 1),
            self._returned_grouped.irange(index + 1),
        )
        return list(islice(found, int(most)))

    def before(self, index: i64, most: i64) -> list[int]:
        """The indexes of the last waiting jobs before an index, at most so many, the last one first."""
        found = sorted(
            [
                *self.plain.before(index, most),
                *self.grouped.before(index, most),
                *self._returned.irange(None, index - 1),
                *self._returned_grouped.irange(None, index - 1),
            ],
            reverse=True,
        )
        return found[: int(most)]

    def restore(self) -> None:
        """Rebuild what follows from the jobs that have objects. The rest was restored."""
        for index, job in self.jobs.items():
            group = job.profile.group
            if job.state == READY:
                if group is None:
                    self._returned.add(index)
                else:
                    self._returned_grouped.add(index)
            elif job.state == LEASED and group is not None:
                group.busy = index
            elif job.holds_back:
                if self._single:
                    self.held.add(index)
                if group is not None:
                    group.hold(index)
        self._first_returned = self._returned[0] if self._returned else 0
        for group in self.groups.by_key.values():
            self.groups.refresh(group)
