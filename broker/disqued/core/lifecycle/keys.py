"""The keys of recently added jobs: adding a job again under the same key returns the ID of the first one.

A key is remembered by its stamp, the characters that stand for queue and key in the ID of the job (`jobs.jobid`). The
ID of a job is therefore enough to forget its key, and the job needs no field for it. The deduplication window begins
when the client gets the ID of the job. Until then the key is kept without a time limit: if the job does not get its
copies, its key is forgotten. With UNTIL done there is no window: the key is kept while this node has the job
unfinished.

Keys are local to the node. They are counted as memory, and each has a timer for the end of its window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.jobs.jobid import stamp_of
from disqued.core.jobs.table import compacted
from disqued.core.memory.accounting import KEY_BYTES
from disqued.core.timers.alarm import Alarm

if TYPE_CHECKING:
    from disqued.core.memory.accounting import Memory
    from disqued.core.timers.wheel import TimerWheel

DEFAULT_WINDOW_S: Final = 300
"""The default of ADDJOB WINDOW."""
SHARDS: Final = 256
"""The number of dicts. One dict of millions of entries would stall the node when it grows, as in the job table."""


def _shard(stamp: bytes) -> i64:
    """The number of the dict that holds a stamp; each character is one of 64."""
    first: i64 = stamp[0]
    second: i64 = stamp[1]
    return (first * 37 + second * 101) & (SHARDS - 1)


@mypyc_attr(acyclic=True)
class Remembered(Alarm):
    """A key: the job that was added under it, and its window."""

    def __init__(self, job_id: bytes, window_s: i64) -> None:
        super().__init__()
        self.job_id = job_id
        self.window_s: i64 = window_s
        self.added_ms: i64 = 0
        """When the client got the ID of the job; 0 while it waits for it."""
        self.until_done: bool = False
        """Whether the key is kept until the job ends, instead of for its window."""

    def ring(self, state: Any) -> None:
        """Forget the key: its window is over."""
        state.lifecycle.keys.forget(self.job_id)


class Keys:
    """The keys that one node remembers."""

    def __init__(self, timers: TimerWheel, memory: Memory) -> None:
        self._timers = timers
        self._memory = memory
        self._shards: list[dict[bytes, Remembered]] = [{} for _ in range(SHARDS)]
        self.count: i64 = 0
        self.until_done: i64 = 0
        """How many of them are kept until their jobs end."""

    def get(self, stamp: bytes) -> Remembered | None:
        """The remembered key that has this stamp."""
        return self._shards[_shard(stamp)].get(stamp)

    def add(self, job_id: bytes, window_s: i64, *, until_done: bool = False) -> None:
        """Remember the key of a new job; it replaces an older job under the same key."""
        stamp = stamp_of(job_id)
        shard = self._shards[_shard(stamp)]
        former = shard.get(stamp)
        if former is None:
            self.count += 1
            self._memory.used_bytes += KEY_BYTES
        else:
            self._timers.disarm(former)
            self._count_out(former)
        remembered = Remembered(job_id, window_s)
        shard[stamp] = remembered
        if until_done:
            self.keep_until_done(remembered)

    def keep_until_done(self, known: Remembered) -> None:
        """Keep a key until its job ends."""
        if not known.until_done:
            known.until_done = True
            self.until_done += 1
            self._timers.disarm(known)

    def _count_out(self, known: Remembered) -> None:
        if known.until_done:
            self.until_done -= 1

    def begin(self, job_id: bytes, added_ms: i64, now_ms: i64) -> None:
        """Begin the window of a job's key, if it has one: its client is told that the job was added at `added_ms`."""
        if self.count == 0:
            return
        known = self.get(stamp_of(job_id))
        if known is not None and known.job_id == job_id:
            known.added_ms = added_ms
            if not known.until_done:
                self._timers.arm(known, now_ms + known.window_s * 1000)

    def end(self, job_id: bytes) -> None:
        """The job has ended here: forget its key if it is kept until then."""
        known = self.get(stamp_of(job_id))
        if known is not None and known.until_done:
            self.forget(job_id)

    def forget(self, job_id: bytes) -> None:
        """Forget the key of this job, if it has one: the next ADDJOB under the key makes a new job."""
        if self.count == 0:
            return
        stamp = stamp_of(job_id)
        shard = self._shards[_shard(stamp)]
        known = shard.get(stamp)
        if known is not None and known.job_id == job_id:
            del shard[stamp]
            self._timers.disarm(known)
            self._count_out(known)
            self.count -= 1
            self._memory.used_bytes -= KEY_BYTES

    def take_all(self) -> list[dict[bytes, Remembered]]:
        """Forget all keys at once, and return the dicts that hold them; their timers are still armed."""
        taken = self._shards
        self._shards = [{} for _ in range(SHARDS)]
        self.count = 0
        self.until_done = 0
        return taken

    def shrink(self, number: int) -> None:
        """Compact dict `number` (modulo the number of dicts) if most of its entries are gone."""
        at = number % SHARDS
        self._shards[at] = compacted(self._shards[at])
