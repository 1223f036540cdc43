"""How much memory the node takes, and what that forbids.

Two things are known. What is *counted*: jobs, their keys, queues, clients and what waits in buffers, each with the
figures that were measured for it (docs/operations/memory.md). And what is *resident*: what the system says the process
takes, looked at ten times per second and whenever the count grew a little. The count decides, because it says at once
what a request would need and what came back; what is resident is the safeguard for all that is not counted: allocators
that keep what was freed, copies under way, mistakes in the figures.

Levels are those of the Disque README ("Memory management"), left a little lower than they are entered:

- above 75 % of `maxmemory` the node keeps no copies of new jobs, others do (COPIES),
- above 95 % what may be forgotten is, oldest first: acknowledged jobs and at-most-once jobs that were delivered
  (EVICTION),
- above 100 %, or when the process is about to outgrow what is left to it, commands that need memory are refused (FULL).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.job import IN_RECLAIMABLE, NOWHERE, Job
from disqued.core.jobs.joblist import JobList

_COMPILED: Final = hasattr(Job, "__mypyc_attrs__")

BASE_BYTES: Final = 1024 * 1024
"""What an empty node is counted with. The program itself is not counted: `startup_bytes`."""
JOB_BYTES: Final = 296 if _COMPILED else 592
"""A job without its body, its entry in the table included."""
QUEUE_BYTES: Final = 535 if _COMPILED else 715
"""A queue without what depends on the length of its name."""
KEY_BYTES: Final = 272 if _COMPILED else 430
"""A key under which a job was added, with the ID of that job."""
CLIENT_BYTES: Final = 8 * 1024
"""A connection: 2 KB in this process, the rest in the kernel, which counts for a container as well."""
BUCKET_BYTES: Final = 224
"""Wake times that nothing else wakes at (`timers`)."""

COPIES: Final = 1
EVICTION: Final = 2
FULL: Final = 3

_ENTER_PERCENT: Final = (0, 75, 95, 100)
_LEAVE_PERCENT: Final = (0, 72, 92, 97)
"""By level."""
_MARGIN_PERCENT: Final = 115
"""What is resident may be so much of `maxmemory`, and"""
_SPARE_BYTES: Final = 32 << 20
"""a little more, for what the program itself comes to need,"""
_LIMIT_PERCENT: Final = 90
"""but never more than this of what the system leaves above the empty process."""
COPIES_UNDER_WAY: Final = 3
"""A big request is in memory several times while it is logged and sent on: so many times its size has to be free beyond
what is read of it."""
_COPIES_OF_A_TURN: Final = 2
"""What many jobs that come in one turn of the event loop take together until it ends, each so many times its size."""
BIG_BYTES: Final = 64 << 10
"""Requests and jobs up to this size need no look ahead: what they need is little beside the distance of the levels."""

_LOOK_BYTES: Final = 1 << 20
"""How much is counted before the system is asked again, if that is more than a 256th of `maxmemory`."""
_WASTE_BYTES: Final = 64 << 20
_LEAST_WASTE_BYTES: Final = 8 << 20
"""So much more must have been freed, but still be resident, before the allocator is asked to give it back: an eighth of
`maxmemory`, between these bounds."""
_NEVER: Final = 1 << 62


def body_bytes(length: i64) -> i64:
    """What the bytes of a body of this length take: with their header, as the allocators round."""
    if length == 0:
        return 0
    if length <= 479:
        return (length + 48) & -16
    return (length + 56) & -16


def queue_bytes(name: bytes) -> i64:
    """What a queue takes; its name stands in three places."""
    return QUEUE_BYTES + 3 * len(name)


class Memory:
    """Bytes in use and the limits they are held against."""

    def __init__(self, resident: Callable[[], int] | None = None) -> None:
        self._resident = resident
        """Asks the system what the process takes."""
        self.used_bytes: i64 = BASE_BYTES
        """Jobs, queues, clients, counted as they come and go."""
        self.input_bytes: i64 = 0
        """Parts of requests that clients began to send, counted as they come."""
        self.under_way_bytes: i64 = 0
        """Copies of new jobs that this turn of the event loop is about to make: records, frames."""
        self.buffer_bytes: i64 = 0
        """All else that waits somewhere, counted ten times per second: replies, frames, records, wake times."""
        self.peak_bytes: i64 = BASE_BYTES
        self.maximum_bytes: i64 = 0
        """`maxmemory`; 0 for no limit."""
        self.system_bytes: i64 = _NEVER
        """What there is for this process: the limit of its container, or the machine's RAM."""
        self.startup_bytes: i64 = i64(resident()) if resident is not None else 0
        """What the empty process took."""
        self.resident_bytes: i64 = 0
        """What it takes beyond that, when it was looked at last."""
        self.most_resident_bytes: i64 = _NEVER
        """What it may take beyond that."""
        self.squeezed: bool = False
        """What is resident forbids more, whatever the count says."""
        self._counted_then: i64 = 0
        """The count when the system was asked last."""
        self._level: i64 = 0
        self._count_level: i64 = 0
        """What it would be if the count alone decided."""
        self._rises_at: i64 = _NEVER
        self._falls_at: i64 = -1
        """Between them there is nothing to decide."""
        self._waste_bytes: i64 = 0
        """What was resident but not in use after the allocator gave back what it could."""
        self._evictable = JobList()

    # --- limits and levels ----------------------------------------------------------------------------------------

    def limit(self, maxmemory_bytes: i64, system_bytes: i64 = _NEVER) -> None:
        """Hold the use against `maxmemory`, 0 for no limit, on a system that has so much for this process."""
        if maxmemory_bytes == self.maximum_bytes and system_bytes == self.system_bytes:
            return
        self.maximum_bytes = maxmemory_bytes
        self.system_bytes = system_bytes
        self._count_level = 0
        self.squeezed = False
        self.most_resident_bytes = _NEVER
        if maxmemory_bytes > 0:
            left_bytes: i64 = (system_bytes - self.startup_bytes) // 100 * _LIMIT_PERCENT
            margin_bytes: i64 = maxmemory_bytes // 100 * _MARGIN_PERCENT + _SPARE_BYTES
            self.most_resident_bytes = min(left_bytes, margin_bytes)
        self.look()

    @property
    def counted_bytes(self) -> i64:
        """All that is counted."""
        return self.used_bytes + self.input_bytes + self.under_way_bytes + self.buffer_bytes

    def level(self) -> i64:
        """0 when all is well, or COPIES, EVICTION, FULL."""
        counted = self.used_bytes + self.input_bytes + self.under_way_bytes + self.buffer_bytes
        if counted > self._rises_at or counted <= self._falls_at:
            if counted > self._counted_then:
                self.look()
            else:
                self._judge(counted)
        return self._level

    def look(self) -> None:
        """Ask the system what the process takes, and judge anew."""
        counted = self.counted_bytes
        if counted > self.peak_bytes:
            self.peak_bytes = counted
        self._counted_then = counted
        if self._resident is not None:
            self.resident_bytes = i64(self._resident()) - self.startup_bytes
            most: i64 = self.most_resident_bytes
            if self.resident_bytes > most:
                self.squeezed = True
            elif self.resident_bytes <= most - most // 32:
                self.squeezed = False
        self._judge(counted)

    def _judge(self, counted: i64) -> None:
        """Find the level of this count, and between which counts nothing changes."""
        if self.maximum_bytes <= 0:
            self._level = 0
            self._count_level = 0
            self._falls_at = -1
            self._rises_at = counted + _LOOK_BYTES
            return
        hundredth: i64 = self.maximum_bytes // 100
        level: i64 = FULL
        while level > 0:
            percent: i64 = _LEAVE_PERCENT[level] if level <= self._count_level else _ENTER_PERCENT[level]
            if counted > percent * hundredth:
                break
            level -= 1
        self._falls_at = _LEAVE_PERCENT[level] * hundredth if level > 0 else -1
        self._rises_at = counted + max(_LOOK_BYTES, self.maximum_bytes // 256)
        if level < FULL:
            self._rises_at = min(self._rises_at, _ENTER_PERCENT[level + 1] * hundredth)
        self._count_level = level
        self._level = FULL if self.squeezed else level

    def has_room_for(self, size: i64) -> bool:
        """Whether a job of this size fits; small ones always do, the levels see to them."""
        return size <= BIG_BYTES or self.fits(COPIES_UNDER_WAY * size)

    @property
    def frame_bytes(self) -> i64:
        """How long a frame with a copy may be that is worth reading."""
        if self.maximum_bytes <= 0:
            return _NEVER
        if self.level() > 0:
            return BIG_BYTES
        return max(BIG_BYTES, (self.maximum_bytes - self.counted_bytes) // COPIES_UNDER_WAY)

    def fits(self, more_bytes: i64) -> bool:
        """Whether so many bytes more stay below the limits."""
        if self.maximum_bytes <= 0:
            return True
        counted = self.counted_bytes
        if counted + more_bytes > self.maximum_bytes:
            return False
        return self.resident_bytes + counted - self._counted_then + more_bytes <= self.most_resident_bytes

    @property
    def is_wasteful(self) -> bool:
        """Whether so much more is resident than in use that the allocator may give some back."""
        waste: i64 = self.resident_bytes - self.counted_bytes
        if waste < self._waste_bytes:
            self._waste_bytes = waste
        much: i64 = _WASTE_BYTES
        if 0 < self.maximum_bytes < 8 * _WASTE_BYTES:
            much = max(self.maximum_bytes // 8, _LEAST_WASTE_BYTES)
        return waste - self._waste_bytes > much

    def gave_back(self) -> None:
        """The allocator gave back what it could."""
        self.look()
        self._waste_bytes = self.resident_bytes - self.counted_bytes

    # --- what is counted ------------------------------------------------------------------------------------------

    def add(self, job: Job) -> None:
        """Count a new job."""
        size: i64 = len(job.body)
        self.used_bytes += JOB_BYTES + body_bytes(size)
        self.under_way_bytes += _COPIES_OF_A_TURN * size

    def remove(self, job: Job) -> None:
        """Count a forgotten job no more."""
        self.used_bytes -= JOB_BYTES + body_bytes(len(job.body))

    # --- what may go ----------------------------------------------------------------------------------------------

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
