"""Records of jobs that ended: outcome, claim and result, kept for the RETAIN of the job.

Their bytes are bounded; beyond the bound the oldest records are dropped. Records of jobs that moved to another queue
are kept for ten minutes at least, so that a client which waits for the first ID of a chain learns the next one.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from mypy_extensions import i64

from disqued.orderedqueue.encoding import Reader, Writer

MOST_BYTES: Final = 16 << 20
"""The bytes that the records of one queue have at most."""
RECORD_BYTES: Final = 200
"""What a record counts besides its result and successor."""
LEAST_MOVED_S: Final = 600


class Record:
    """What is known of a job that ended."""

    def __init__(self, index: i64, outcome: i64, ended_ms: i64, claim: i64, until_ms: i64) -> None:
        self.index: i64 = index
        self.outcome: i64 = outcome
        self.ended_ms: i64 = ended_ms
        self.claim: i64 = claim
        self.until_ms: i64 = until_ms
        """When it is forgotten."""
        self.result: bytes | None = None
        self.successor = b""
        """The ID of the job in the other queue; empty if there is none."""

    @property
    def used_bytes(self) -> i64:
        """What it counts."""
        size: i64 = RECORD_BYTES + len(self.successor)
        if self.result is not None:
            size += len(self.result)
        return size


class Records:
    """The records of a queue."""

    def __init__(self) -> None:
        self.by_index: dict[int, Record] = {}
        """In the order in which the jobs ended."""
        self._heap: list[tuple[int, int]] = []
        self.used_bytes: i64 = 0

    def add(self, record: Record) -> None:
        """Keep a record; drop the oldest ones if there is no room."""
        self.by_index[int(record.index)] = record
        self.used_bytes += record.used_bytes
        heappush(self._heap, (int(record.until_ms), int(record.index)))
        while self.used_bytes > MOST_BYTES:
            self._drop(next(iter(self.by_index)))
        if len(self._heap) > 2 * len(self.by_index) + RECORD_BYTES:
            self._rebuild()

    def set_result(self, record: Record, result: bytes) -> None:
        """Give a record its result."""
        record.result = result
        self.used_bytes += len(result)

    def set_successor(self, record: Record, successor: bytes) -> None:
        """Give a record the ID of the successor."""
        record.successor = successor
        self.used_bytes += len(successor)

    def _drop(self, index: int) -> None:
        self.used_bytes -= self.by_index.pop(index).used_bytes

    def forget(self, now_ms: i64) -> None:
        """Forget the records whose time is over."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            _, index = heappop(heap)
            if index in self.by_index:
                self._drop(index)

    def _rebuild(self) -> None:
        self._heap = [(int(record.until_ms), index) for index, record in self.by_index.items()]
        heapify(self._heap)

    def write(self, out: Writer) -> None:
        """Append the records to a snapshot."""
        out.number(len(self.by_index))
        for record in self.by_index.values():
            out.number(record.index)
            out.number(record.outcome)
            out.number(record.ended_ms)
            out.number(record.claim)
            out.number(record.until_ms)
            out.text(record.successor)
            result = record.result
            out.flag(result is not None)
            if result is not None:
                out.text(result)

    def read(self, data: Reader) -> None:
        """Restore the records. Raises Malformed."""
        for _ in range(data.count()):
            index = data.number()
            outcome = data.number()
            ended_ms = data.number()
            claim = data.number()
            record = Record(index, outcome, ended_ms, claim, data.number())
            record.successor = data.text()
            if data.flag():
                record.result = data.text()
            self.by_index[int(index)] = record
            self.used_bytes += record.used_bytes
        self._rebuild()
