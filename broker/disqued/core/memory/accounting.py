"""Memory accounting: how much memory the node uses, and what is refused at each level.

There are two measures. *Counted* memory is the sum of jobs, keys, queues, clients and buffers, each with a measured
size (docs/operations/memory.md). *Resident* memory is what the system reports for the process; it is read ten times per
second, and whenever the count grew a little. The count decides, because it changes at once with each request. Resident
memory is the safeguard for everything that is not counted: memory that the allocator keeps, temporary copies, and
errors in the sizes.

The levels are those of the Disque README ("Memory management"). Each is left a little below the value at which it is
entered:

- COPIES, above 75 % of `maxmemory`: the node keeps no copies of new jobs; other nodes do.
- EVICTION, above 95 %: acknowledged jobs and delivered at-most-once jobs are dropped, the oldest first.
- FULL, above 100 %, or when the process comes close to the memory that the system leaves it: commands that need memory
  are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.job import IN_RECLAIMABLE, IN_UNKNOWN, NOWHERE, Job
from disqued.core.jobs.joblist import JobList

_COMPILED: Final = hasattr(Job, "__mypyc_attrs__")

BASE_BYTES: Final = 1024 * 1024
"""The count of an empty node. The program itself is not counted (`startup_bytes`)."""
JOB_BYTES: Final = 296 if _COMPILED else 600
"""The size of a job without its body, including its entry in the job table."""
QUEUE_BYTES: Final = 535 if _COMPILED else 715
"""The size of a queue without its name."""
KEY_BYTES: Final = 272 if _COMPILED else 430
"""The size of a key under which a job was added, including the ID of the job."""
WAIT_BYTES: Final = 72 if _COMPILED else 216
"""The size of the wait of a client for one queue (GETJOB)."""
CLIENT_BYTES: Final = 8 * 1024
"""The size of a connection: 2 KB in the process, the rest in the kernel, which containers are charged for as well."""

COPIES: Final = 1
EVICTION: Final = 2
FULL: Final = 3

_ENTER_PERCENT: Final = (0, 75, 95, 100)
_LEAVE_PERCENT: Final = (0, 72, 92, 97)
"""By level."""
_MARGIN_PERCENT: Final = 115
"""Resident memory may reach this share of `maxmemory`,"""
_SPARE_BYTES: Final = 32 << 20
"""plus this for the program itself,"""
_LIMIT_PERCENT: Final = 90
"""but never more than this share of what the system leaves beyond the empty process."""
COPIES_UNDER_WAY: Final = 3
"""A big request is in memory several times while it is logged and replicated: so many times its size must be free."""
_COPIES_OF_A_TURN: Final = 2
"""Each job that is added takes this many times its size until the turn of the event loop ends."""
BIG_BYTES: Final = 64 << 10
"""Requests and jobs up to this size are not checked beforehand: they are small beside the distance of the levels."""

_SHARE: Final = 16
_LEAST_SHARE_BYTES: Final = 1 << 20
_MOST_SHARE_BYTES: Final = 64 << 20

_LOOK_BYTES: Final = 1 << 20
"""The system is asked again when the count grew by this, or by a 256th of `maxmemory` if that is more."""
_WASTE_BYTES: Final = 64 << 20
_LEAST_WASTE_BYTES: Final = 8 << 20
"""The allocator is asked to return memory when this much is resident and not in use: an eighth of `maxmemory`, between
these bounds."""
_NEVER: Final = 1 << 62


def body_bytes(length: i64) -> i64:
    """The size of a body of this length, with its header and as the allocators round it."""
    if length == 0:
        return 0
    if length <= 479:
        return (length + 48) & -16
    return (length + 56) & -16


def queue_bytes(name: bytes) -> i64:
    """The size of a queue; its name is stored three times."""
    return QUEUE_BYTES + 3 * len(name)


class Memory:
    """The memory in use and its limits."""

    def __init__(self, resident: Callable[[], int] | None = None) -> None:
        self._resident = resident
        """Reads the resident memory of the process from the system."""
        self.used_bytes: i64 = BASE_BYTES
        """Jobs, keys, queues and clients."""
        self.input_bytes: i64 = 0
        """Incomplete requests of clients."""
        self.under_way_bytes: i64 = 0
        """Copies of new jobs that this turn of the event loop makes: records and frames."""
        self.buffer_bytes: i64 = 0
        """Other buffers, counted ten times per second: replies, frames, records."""
        self.peak_bytes: i64 = BASE_BYTES
        self.maximum_bytes: i64 = 0
        """`maxmemory`; 0 for no limit."""
        self.system_bytes: i64 = _NEVER
        """The memory that the system has for this process: the limit of its container, or the RAM."""
        self.startup_bytes: i64 = i64(resident()) if resident is not None else 0
        """Resident memory of the empty process."""
        self.resident_bytes: i64 = 0
        """Resident memory beyond that, when it was last read."""
        self.most_resident_bytes: i64 = _NEVER
        """The limit of `resident_bytes`."""
        self.resident_exceeded: bool = False
        """Resident memory exceeds its limit: the level is FULL, whatever the count says."""
        self._counted_then: i64 = 0
        """The count when resident memory was last read."""
        self._level: i64 = 0
        self._count_level: i64 = 0
        """The level by the count alone."""
        self._rises_at: i64 = _NEVER
        self._falls_at: i64 = -1
        """Counts between these two do not change the level."""
        self._waste_bytes: i64 = 0
        """Memory that was resident but not in use after the allocator last returned memory."""
        self._evictable = JobList()
        self._unknown = JobList()
        """Acknowledgements of jobs that this node does not have."""
        self._unknown_count: i64 = 0

    # --- limits and levels ----------------------------------------------------------------------------------------

    def limit(self, maxmemory_bytes: i64, system_bytes: i64 = _NEVER) -> None:
        """Set `maxmemory`, 0 for no limit, and the memory that the system has for this process."""
        if maxmemory_bytes == self.maximum_bytes and system_bytes == self.system_bytes:
            return
        self.maximum_bytes = maxmemory_bytes
        self.system_bytes = system_bytes
        self._count_level = 0
        self.resident_exceeded = False
        self.most_resident_bytes = _NEVER
        if maxmemory_bytes > 0:
            left_bytes: i64 = (system_bytes - self.startup_bytes) // 100 * _LIMIT_PERCENT
            margin_bytes: i64 = maxmemory_bytes // 100 * _MARGIN_PERCENT + _SPARE_BYTES
            self.most_resident_bytes = min(left_bytes, margin_bytes)
        self.look()

    @property
    def share_bytes(self) -> i64:
        """The limit for something that clients get for nothing: a 16th of `maxmemory`, but 1 to 64 MB."""
        if self.maximum_bytes <= 0:
            return _MOST_SHARE_BYTES
        return min(max(self.maximum_bytes // _SHARE, _LEAST_SHARE_BYTES), _MOST_SHARE_BYTES)

    @property
    def counted_bytes(self) -> i64:
        """The sum of all counts."""
        return self.used_bytes + self.input_bytes + self.under_way_bytes + self.buffer_bytes

    def level(self) -> i64:
        """The level: 0, COPIES, EVICTION or FULL."""
        counted = self.used_bytes + self.input_bytes + self.under_way_bytes + self.buffer_bytes
        if counted > self._rises_at or counted <= self._falls_at:
            if counted > self._counted_then:
                self.look()
            else:
                self._judge(counted)
        return self._level

    def look(self) -> None:
        """Read the resident memory from the system, and compute the level."""
        counted = self.counted_bytes
        if counted > self.peak_bytes:
            self.peak_bytes = counted
        self._counted_then = counted
        if self._resident is not None:
            self.resident_bytes = i64(self._resident()) - self.startup_bytes
            most: i64 = self.most_resident_bytes
            if self.resident_bytes > most:
                self.resident_exceeded = True
            elif self.resident_bytes <= most - most // 32:
                self.resident_exceeded = False
        self._judge(counted)

    def _judge(self, counted: i64) -> None:
        """Compute the level, and the counts between which it stays."""
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
        self._level = FULL if self.resident_exceeded else level

    def has_room_for(self, size: i64) -> bool:
        """Whether a job of this size fits. A small job always does: the levels are enough for it."""
        return size <= BIG_BYTES or self.fits(COPIES_UNDER_WAY * size)

    @property
    def frame_bytes(self) -> i64:
        """The largest frame with a copy of a job that is read."""
        if self.maximum_bytes <= 0:
            return _NEVER
        if self.level() > 0:
            return BIG_BYTES
        return max(BIG_BYTES, (self.maximum_bytes - self.counted_bytes) // COPIES_UNDER_WAY)

    def fits(self, more_bytes: i64) -> bool:
        """Whether this many more bytes stay below the limits."""
        if self.maximum_bytes <= 0:
            return True
        counted = self.counted_bytes
        if counted + more_bytes > self.maximum_bytes:
            return False
        return self.resident_bytes + counted - self._counted_then + more_bytes <= self.most_resident_bytes

    @property
    def is_wasteful(self) -> bool:
        """Whether much more memory is resident than in use, so that the allocator should return some."""
        waste: i64 = self.resident_bytes - self.counted_bytes
        if waste < self._waste_bytes:
            self._waste_bytes = waste
        much: i64 = _WASTE_BYTES
        if 0 < self.maximum_bytes < 8 * _WASTE_BYTES:
            much = max(self.maximum_bytes // 8, _LEAST_WASTE_BYTES)
        return waste - self._waste_bytes > much

    def gave_back(self) -> None:
        """Note that the allocator returned what it could."""
        self.look()
        self._waste_bytes = self.resident_bytes - self.counted_bytes

    # --- counting -----------------------------------------------------------------------------------------------------

    def add(self, job: Job) -> None:
        """Count a new job."""
        size: i64 = len(job.body)
        self.used_bytes += JOB_BYTES + body_bytes(size)
        if job.extra is not None:
            self.used_bytes += job.extra.size_bytes
        self.under_way_bytes += _COPIES_OF_A_TURN * size

    def remove(self, job: Job) -> None:
        """Uncount a job."""
        self.used_bytes -= JOB_BYTES + body_bytes(len(job.body))
        if job.extra is not None:
            self.used_bytes -= job.extra.size_bytes

    # --- eviction -----------------------------------------------------------------------------------------------------

    def allow_eviction(self, job: Job) -> None:
        """Allow a job that is in no queue to be dropped when memory is short."""
        if job.place != NOWHERE:
            return
        job.place = IN_RECLAIMABLE
        self._evictable.append(job)

    def forbid_all_evictions(self) -> None:
        """Remove all jobs from the list of those that may be evicted: they are dropped."""
        self._evictable = JobList()
        self._unknown = JobList()
        self._unknown_count = 0

    def forbid_eviction(self, job: Job) -> None:
        """Keep a job from being evicted; it may have been allowed before."""
        if job.place == IN_RECLAIMABLE:
            self._evictable.remove(job)
        elif job.place == IN_UNKNOWN:
            self._unknown.remove(job)
            self._unknown_count -= 1
        else:
            return
        job.place = NOWHERE

    def oldest_evictable(self) -> Job | None:
        """The job to evict first, or None."""
        unknown = self._unknown.first
        return unknown if unknown is not None else self._evictable.first

    # --- acknowledgements of unknown jobs -----------------------------------------------------------------------------

    def add_unknown(self, job: Job) -> None:
        """Allow the acknowledgement of an unknown job to be dropped when memory is short or when there are too many."""
        job.place = IN_UNKNOWN
        self._unknown.append(job)
        self._unknown_count += 1

    def surplus_unknown(self) -> Job | None:
        """The oldest acknowledgement of an unknown job, if all of them take more than their share of the memory."""
        return self._unknown.first if self._unknown_count * JOB_BYTES > self.share_bytes else None
