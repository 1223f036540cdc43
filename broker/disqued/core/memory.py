"""How much memory the node's data takes, and what that forbids.

Memory is counted as jobs, queues and clients come and go, with figures measured on the compiled build
(docs/performance). Above 75 % of `maxmemory` the node keeps no copies of new jobs, above 95 % it tries to free memory
before each command and refuses commands that need more (Disque README, "Memory management"). What may be freed is
kept in a list, oldest first: acknowledged jobs and delivered at-most-once jobs.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.job import IN_RECLAIMABLE, NOWHERE, Job
from disqued.core.joblist import JobList

BASE_BYTES: Final = 1024 * 1024
JOB_BYTES: Final = 320
"""A job without its body, its entry in the table included."""
QUEUE_BYTES: Final = 1024
CLIENT_BYTES: Final = 16 * 1024

COPIES_PERCENT: Final = 75
EVICTION_PERCENT: Final = 95


class Memory:
    """Bytes in use and the limits they are held against."""

    def __init__(self) -> None:
        self.used_bytes: i64 = BASE_BYTES
        self.peak_bytes: i64 = BASE_BYTES
        self._copies_bytes: i64 = 0
        self._eviction_bytes: i64 = 0
        self._limited: bool = False
        self._evictable = JobList()

    def limit(self, maxmemory_bytes: int) -> None:
        """Hold the use against `maxmemory`; 0 for no limit."""
        self._limited = maxmemory_bytes > 0
        self._copies_bytes = maxmemory_bytes // 100 * COPIES_PERCENT
        self._eviction_bytes = maxmemory_bytes // 100 * EVICTION_PERCENT

    def level(self) -> int:
        """0: normal, 1: keeps no copies of new jobs, 2: frees memory or refuses."""
        if not self._limited or self.used_bytes <= self._copies_bytes:
            return 0
        return 1 if self.used_bytes <= self._eviction_bytes else 2

    def add(self, job: Job) -> None:
        """Count a new job."""
        self.used_bytes += JOB_BYTES + len(job.body)
        if self.used_bytes > self.peak_bytes:
            self.peak_bytes = self.used_bytes

    def remove(self, job: Job) -> None:
        """Count a forgotten job no more."""
        self.used_bytes -= JOB_BYTES + len(job.body)

    def allow_eviction(self, job: Job) -> None:
        """The job, which is in no queue, may be dropped when memory runs short."""
        if job.place != NOWHERE:
            return
        job.place = IN_RECLAIMABLE
        self._evictable.append(job)

    def forbid_eviction(self, job: Job) -> None:
        """The job is dropped or needed again."""
        if job.place != IN_RECLAIMABLE:
            return
        job.place = NOWHERE
        self._evictable.remove(job)

    def oldest_evictable(self) -> Job | None:
        """The job to drop first."""
        return self._evictable.first
