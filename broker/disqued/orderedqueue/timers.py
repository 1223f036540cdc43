"""When something happens to jobs that have objects: a lease or a delay ends, or a life.

A heap of (time, index). A job whose time changes gets another entry, and the old one counts no more: the time in the
job says which entry is valid. The heap is rebuilt when it has many more entries than there are jobs, so it stays small
although nearly all leases end by an acknowledgement.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from mypy_extensions import i64

from disqued.orderedqueue.job import DELAYED, LEASED, Job

_SLACK: Final = 64
"""More invalid entries than this, and than there are jobs, are removed."""


class JobTimers:
    """The times of jobs."""

    def __init__(self, jobs: dict[int, Job]) -> None:
        self._jobs = jobs
        self._heap: list[tuple[int, int]] = []

    def arm(self, job: Job) -> None:
        """Set the time of a job after its state, its lease or its delay changed."""
        due_ms = job.expires_ms
        if (job.state == LEASED or job.state == DELAYED) and job.until_ms < due_ms:
            due_ms = job.until_ms
        if job.due_ms == due_ms:
            return
        job.due_ms = due_ms
        heap = self._heap
        heappush(heap, (int(due_ms), int(job.index)))
        if len(heap) > 2 * len(self._jobs) + _SLACK:
            self.rebuild()

    def rebuild(self) -> None:
        """Make the heap of the jobs' times."""
        self._heap = [(int(job.due_ms), index) for index, job in self._jobs.items() if job.due_ms > 0]
        heapify(self._heap)

    def first_ms(self) -> i64:
        """The first time; 0 if there is none."""
        heap = self._heap
        while heap:
            due_ms, index = heap[0]
            job = self._jobs.get(index)
            if job is not None and job.due_ms == due_ms:
                return due_ms
            heappop(heap)
        return 0

    def pop(self, now_ms: i64) -> Job | None:
        """Take the first job whose time has come; None if there is none."""
        first_ms = self.first_ms()
        if first_ms == 0 or first_ms > now_ms:
            return None
        job = self._jobs[heappop(self._heap)[1]]
        job.due_ms = 0
        return job
