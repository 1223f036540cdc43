"""Jobs that were finished recently and that this node does not have (any more).

Frames of one sender arrive in order, those of two senders do not. The acknowledgement of a job may overtake the copy
that the job's creator sent, above all on a node that was suspended for a while. Kept as a new job, the copy would be
delivered again long after the work was done, so it is kept as an acknowledged one.

Half a minute of acknowledgements may be hundreds of thousands. So only a hash of 62 bits of each ID is kept. A job is
taken for a finished one by mistake, and lost, with a probability of IDs / 2^62 for each copy that arrives: one in
4 * 10^12 with a million IDs. The hashes are in many small sets, each with two generations, so no step touches many.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

SPAN_MS: Final = 30_000
"""How long a generation collects IDs; when it is over, those of the one before are forgotten."""
NAMED_SPAN_MS: Final = 600_000
"""The same for jobs whose IDs were given or derived: they may be added again, by a client or by another node."""
SHARDS: Final = 256
"""The number of sets. Each has few hashes, so growing it or dropping it takes microseconds."""
ID_BYTES: Final = 96
"""The size of a hash in a set: measured, an integer of 32 bytes and up to 64 bytes of the table."""
SHARE: Final = 32
"""The hashes may take this part of `maxmemory`,"""
LEAST_BYTES: Final = 1 << 20
MOST_BYTES: Final = 64 << 20
"""between these bounds; the upper one also applies without `maxmemory`."""
_HASH: Final = (1 << 62) - 1
TURNS_PER_VISIT: Final = 8
"""Shards whose time is looked at per cron tick."""


def limit(maximum_bytes: i64) -> i64:
    """How many IDs may be remembered with this `maxmemory` in bytes; 0 means no limit."""
    share_bytes: i64 = maximum_bytes // SHARE if maximum_bytes > 0 else MOST_BYTES
    return min(max(share_bytes, LEAST_BYTES), MOST_BYTES) // ID_BYTES


@mypyc_attr(acyclic=True)
class _Shard:
    """The hashes that have the same last bits."""

    def __init__(self) -> None:
        self.recent: set[int] = set()
        self.older: set[int] = set()
        self.since_ms: i64 = 0
        """When `recent` was begun."""


class RecentlyDone:
    """Remembers IDs for the time of a generation or longer, up to a share of the memory."""

    def __init__(self, span_ms: i64 = SPAN_MS) -> None:
        self._span_ms: i64 = span_ms
        self._shards = [_Shard() for _ in range(SHARDS)]
        self._next: i64 = 0
        """The shard that is looked at next."""
        self.most: i64 = limit(0)
        """How many IDs may be remembered."""
        self.count: i64 = 0
        """IDs that are remembered."""
        self.forgotten_early: i64 = 0
        """IDs that were forgotten before half a minute was over, because there were too many."""

    @property
    def used_bytes(self) -> i64:
        """The memory that they take."""
        return self.count * ID_BYTES

    def note(self, job_id: bytes, now_ms: i64) -> None:
        """Remember a job that is done and not here."""
        number = hash(job_id) & _HASH
        shard = self._shards[number % SHARDS]
        recent = shard.recent
        if now_ms - shard.since_ms >= self._span_ms:
            self._turn(shard, now_ms)
            recent = shard.recent
        elif len(recent) * 2 * SHARDS >= self.most:
            self.forgotten_early += len(shard.older)
            self._turn(shard, now_ms)
            recent = shard.recent
        before = len(recent)
        recent.add(number)
        self.count += len(recent) - before

    def _turn(self, shard: _Shard, now_ms: i64) -> None:
        """Begin a new generation, and forget the one before the last."""
        self.count -= len(shard.older)
        shard.older = shard.recent
        shard.recent = set()
        shard.since_ms = now_ms

    def visit(self, now_ms: i64) -> None:
        """Forget old IDs of some shards, so that an idle node keeps none."""
        if self.count == 0:
            return
        for _ in range(TURNS_PER_VISIT):
            shard = self._shards[self._next]
            self._next = (self._next + 1) % SHARDS
            if now_ms - shard.since_ms >= self._span_ms:
                self._turn(shard, now_ms)

    def has(self, job_id: bytes) -> bool:
        """Whether the job is remembered as done."""
        if self.count == 0:
            return False
        number = hash(job_id) & _HASH
        shard = self._shards[number % SHARDS]
        return number in shard.recent or number in shard.older
