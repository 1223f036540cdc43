"""The records of one node: by job ID, the newest link of a chain by the ID of its first job, and by age.

Records count as memory. The fates room keeps them within their bound. They are in many dicts, because one dict of
millions of entries would stall the node when it grows.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.fates.record import Record
from disqued.core.jobs.table import SHARDS, shard_of
from disqued.core.memory.accounting import Memory
from disqued.core.timers.wheel import TimerWheel

_PART: Final = 200


class Records:
    """The records that one node keeps."""

    def __init__(self, timers: TimerWheel, memory: Memory) -> None:
        self._timers = timers
        self._memory = memory
        self._shards: list[dict[bytes, Record]] = [{} for _ in range(SHARDS)]
        self._by_queue: dict[bytes, i64] = {}
        """How many there are of each queue."""
        self._newest: dict[bytes, Record] = {}
        """The newest links of chains of moves, by the ID of the first job; not the first jobs themselves."""
        self.oldest: Record | None = None
        self._latest: Record | None = None
        self._dropped: list[dict[bytes, Record]] = []
        """Records that were dropped at once, and whose memory is freed in parts."""
        self.count: i64 = 0
        self.used_bytes: i64 = 0

    def get(self, job_id: bytes) -> Record | None:
        """The record of the job with this ID."""
        return self._shards[shard_of(job_id)].get(job_id)

    def newest(self, origin: bytes) -> Record | None:
        """The record of the newest link of a chain, other than its first job."""
        return self._newest.get(origin)

    def of_queue(self, queue: bytes) -> i64:
        """How many jobs of a queue have a record here."""
        return self._by_queue.get(queue, 0)

    @property
    def shards(self) -> i64:
        """The number of parts for `shard`."""
        return SHARDS

    def shard(self, number: i64) -> list[Record]:
        """The records of one part."""
        return list(self._shards[number].values())

    def add(self, record: Record) -> None:
        """Add the record of a job that has none, and forget it when its time is over."""
        self._shards[shard_of(record.job_id)][record.job_id] = record
        self.count += 1
        self._by_queue[record.queue] = self.of_queue(record.queue) + 1
        record.older = self._latest
        if self._latest is None:
            self.oldest = record
        else:
            self._latest.newer = record
        self._latest = record
        if record.origin != record.job_id:
            known = self._newest.get(record.origin)
            if known is None or record.fate.is_newer_than(known.fate):
                self._newest[record.origin] = record
        self._count(record.size_bytes)
        self._timers.arm(record, record.until_ms)

    def replace(self, old: Record, record: Record) -> None:
        """Put a record in the place of an older one of the same job."""
        self.remove(old)
        self.add(record)

    def remove(self, record: Record) -> None:
        """Remove a record."""
        del self._shards[shard_of(record.job_id)][record.job_id]
        self.count -= 1
        left = self.of_queue(record.queue) - 1
        if left > 0:
            self._by_queue[record.queue] = left
        else:
            del self._by_queue[record.queue]
        self._timers.disarm(record)
        older, newer = record.older, record.newer
        if older is None:
            self.oldest = newer
        else:
            older.newer = newer
        if newer is None:
            self._latest = older
        else:
            newer.older = older
        record.older = None
        record.newer = None
        if self._newest.get(record.origin) is record:
            del self._newest[record.origin]
        self._count(-record.size_bytes)

    def drop_all(self) -> None:
        """Forget all records at once; the caller counts memory from the beginning, and calls `free_part`."""
        self._dropped += [shard for shard in self._shards if shard]
        self._shards = [{} for _ in range(SHARDS)]
        self._by_queue = {}
        self._newest = {}
        self.oldest = None
        self._latest = None
        self.count = 0
        self.used_bytes = 0

    def free_part(self) -> bool:
        """Free the memory of some records that were dropped at once; False when nothing is left."""
        for _ in range(_PART):
            if not self._dropped:
                return False
            shard = self._dropped[-1]
            record = shard.popitem()[1]
            self._timers.disarm(record)
            record.older = None
            record.newer = None
            if not shard:
                self._dropped.pop()
        return bool(self._dropped)

    def _count(self, size: i64) -> None:
        self.used_bytes += size
        self._memory.used_bytes += size
