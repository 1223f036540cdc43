"""Keys of producers: an ADD under a key that is remembered adds no job, and gets the one that was added first.

A key is remembered for the window of the ADD that set it, or until its job ends (UNTIL done). A repeated ADD also has a
window: it is a new job if the first one was added longer ago than that. A window continues after the end of the job.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from mypy_extensions import i64

from disqued.orderedqueue.effects import Known
from disqued.orderedqueue.encoding import Reader, Writer


class Key:
    """One remembered key."""

    def __init__(self, known: Known, added_ms: i64, until_ms: i64) -> None:
        self.known = known
        self.added_ms: i64 = added_ms
        self.until_ms: i64 = until_ms
        """When it is forgotten; 0 if it is kept until the job ends."""


class Keys:
    """The keys of a queue."""

    def __init__(self) -> None:
        self.by_key: dict[bytes, Key] = {}
        self._of_jobs: dict[int, bytes] = {}
        """Keys that are kept until their jobs end, by the index of the job."""
        self._heap: list[tuple[int, bytes]] = []
        """The ends of windows."""

    def keep_until_done(self, key: bytes, entry: Key) -> None:
        """Keep a remembered key until its job ends, instead of for its window."""
        entry.until_ms = 0
        self._of_jobs[int(entry.known.index)] = key

    def add(self, key: bytes, known: Known, now_ms: i64, window_s: i64, *, until_done: bool) -> None:
        """Remember the key of a new job."""
        former = self.by_key.pop(key, None)
        if former is not None:
            self._of_jobs.pop(int(former.known.index), None)
        until_ms: i64 = 0 if until_done else now_ms + window_s * 1000
        self.by_key[key] = Key(known, now_ms, until_ms)
        if until_done:
            self._of_jobs[int(known.index)] = key
        else:
            heappush(self._heap, (int(until_ms), key))

    def job_ended(self, index: i64) -> None:
        """Forget the key that was kept until the end of this job."""
        if self._of_jobs:
            key = self._of_jobs.pop(int(index), None)
            if key is not None:
                del self.by_key[key]

    def forget(self, now_ms: i64) -> None:
        """Forget the keys whose windows are over."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            until_ms, key = heappop(heap)
            found = self.by_key.get(key)
            if found is not None and found.until_ms == until_ms:
                del self.by_key[key]

    def write(self, out: Writer) -> None:
        """Append the keys to a snapshot."""
        out.number(len(self.by_key))
        for key, entry in self.by_key.items():
            out.text(key)
            out.number(entry.known.index)
            out.number(entry.known.ttl_s)
            out.number(entry.known.retry_s)
            out.number(entry.added_ms)
            out.number(entry.until_ms)

    def read(self, data: Reader) -> None:
        """Restore the keys. Raises Malformed."""
        for _ in range(data.count()):
            key = data.text()
            index = data.number()
            ttl_s = data.number()
            known = Known(index, ttl_s, data.number())
            added_ms = data.number()
            entry = Key(known, added_ms, data.number())
            self.by_key[key] = entry
            if entry.until_ms == 0:
                self._of_jobs[int(index)] = key
            else:
                self._heap.append((int(entry.until_ms), key))
        heapify(self._heap)
