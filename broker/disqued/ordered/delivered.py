"""A job that a consumer got: the assignment, and what the entry says that added it."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.clients.blocked import CLAIM, COUNTERS, META, REQUEUE
from disqued.ordered.catalog import OrderedQueue
from disqued.orderedqueue.add import Add, add_head
from disqued.orderedqueue.effects import Assigned
from disqued.resp import writer

_NEVER: Final = -1


class Delivered:
    """One assigned job."""

    def __init__(self, assigned: Assigned) -> None:
        self.index: i64 = assigned.index
        self.claim: i64 = assigned.claim
        self.until_ms: i64 = assigned.until_ms
        """When the lease ends, on the clock of the leader; 0 if there is none."""
        self.nacks: i64 = assigned.nacks
        self.additional: i64 = assigned.additional
        self.leased_ms: i64 = _NEVER
        """How long the lease is."""
        self.counted: bool = False
        """Whether it is one of the assignments since its consumer joined."""
        self.lost: bool = False
        """Whether its body does not exist any more."""
        self._add: Add | None = None
        self._data = b""

    @property
    def complete(self) -> bool:
        """Whether its body is here, or will never be."""
        return self._add is not None or self.lost

    def fill(self, data: bytes, time_ms: i64) -> None:
        """Take the entry that added the job; `time_ms` is the time of the assignment."""
        self._add = add_head(data)
        self._data = data
        if self.until_ms > 0:
            self.leased_ms = max(self.until_ms - time_ms, 0)

    def append_to(self, out: list[bytes], queue: OrderedQueue, fields: i64) -> None:
        """Append the job to the reply of GETJOB, with these further fields."""
        add = self._add
        assert add is not None
        length: i64 = 3
        for field, words in ((COUNTERS, 4), (REQUEUE, 2), (CLAIM, 4), (META, 4)):
            if fields & field:
                length += words
        job_id = queue.job_id(self.index, add.ttl_s, add.retry_s > 0)
        out.append(writer.array_header(int(length)) + writer.bulk(queue.name) + writer.bulk(job_id))
        out.append(writer.bulk_header(int(add.size)))
        out.append(self._data[add.body_at :])
        out.append(writer.CRLF)
        if fields & COUNTERS:
            out.append(b"$5\r\nnacks\r\n" + writer.integer(int(self.nacks)))
            out.append(b"$21\r\nadditional-deliveries\r\n" + writer.integer(int(self.additional)))
        if fields & REQUEUE:
            out.append(b"$13\r\nrequeue-in-ms\r\n" + writer.integer(int(self.leased_ms)))
        if fields & CLAIM:
            out.append(b"$5\r\nclaim\r\n" + writer.integer(int(self.claim)))
            out.append(b"$5\r\nlease\r\n" + writer.integer(int(self.leased_ms)))
        if fields & META:
            out.append(b"$4\r\nmeta\r\n" + writer.bulk(add.meta))
            out.append(b"$8\r\npriority\r\n:0\r\n")
