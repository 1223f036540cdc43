"""Records of jobs, built fast: the parts that consecutive jobs share are built once.

Consecutive jobs mostly have the same queue, options, holders and expiry second, so their records differ only in ID,
creation time and body. The first of them is written by `records.keep`, the second is cut into the shared parts; so jobs
that share nothing cost no more than without this. A test compares the records with those of `records.keep`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final
from zlib import crc32

from mypy_extensions import i64

from disqued.core.cluster.holders import Holders
from disqued.core.jobs.codec import (
    BODY_AT,
    CTIME_AT,
    DELAY_AT,
    ID_AT,
    STATE_AT,
    STORED_FLAGS,
    pack_for_disk,
)
from disqued.core.jobs.job import ACKED, NOBODY, Job, NodeIds
from disqued.core.lifecycle.journal import Journal
from disqued.persistence.records import SUM_BYTES, SUM_MARK, forget, head, stored_state
from disqued.persistence.records import keep as whole_record
from disqued.resp.writer import request

_sum: Final = crc32
"""Looked up once, not for each job."""
_pack_end: Final = Struct(f"<{len(SUM_MARK)}sI2s").pack
_END: Final = b"\r\n"


class RecordWriter:
    """Writes the records of one node."""

    def __init__(self, holders: Holders) -> None:
        self._all_holders = holders
        self._node_id = b""
        self._with_sum: bool = False
        self._queue = b""
        self._body_bytes: i64 = -1
        self._state: i64 = 0
        self._flags: i64 = 0
        self._repl: i64 = 0
        self._delay_s: i64 = 0
        self._retry_s: i64 = 0
        self._nacks: i64 = 0
        self._additional_deliveries: i64 = 0
        self._expire_at_s: i64 = 0
        self._holders: NodeIds | None = NOBODY
        """The values of the last job."""
        self._is_cut: bool = False
        """Whether the parts below were built for these values."""
        self._head = b""
        self._before_id = b""
        self._behind_id = b""
        self._behind_ctime = b""
        self._behind_body = b""
        self._pack: Callable[..., bytes] = _pack_end
        """Joins these parts with those that differ: one call costs half of `bytes.join`."""

    def group(self, journal: Journal, node_id: bytes, *, with_sum: bool) -> bytes:
        """Return the records of all changes in the journal, and empty it."""
        records: list[bytes] = []
        for change in journal.changes:
            if isinstance(change, Job):
                if change.state != ACKED:  # a DELJOB follows
                    self.keep(records, change, stored_state(change, handed_on=False), node_id, with_sum=with_sum)
            elif isinstance(change, bytes):
                records.append(forget(change))
            elif isinstance(change, tuple):
                records.append(request(change))
        journal.changes.clear()  # the same list: the shell looks at it
        return b"".join(records)

    def keep(self, records: list[bytes], job: Job, state: i64, node_id: bytes, *, with_sum: bool) -> None:
        """Append the record of a job in this state to `records`, as several pieces."""
        body = job.body
        if (
            job.queue is not self._queue
            or len(body) != self._body_bytes
            or state != self._state
            or job.expire_at_s != self._expire_at_s
            or i64(job.flags) & STORED_FLAGS != self._flags
            or job.delivered is not self._holders
            or job.retry_s != self._retry_s
            or job.delay_s != self._delay_s
            or i64(job.repl) != self._repl
            or i64(job.nacks) != self._nacks
            or i64(job.additional_deliveries) != self._additional_deliveries
            or node_id is not self._node_id
            or with_sum != self._with_sum
        ):
            self._remember(job, state, node_id, with_sum=with_sum)
            records.append(whole_record(job, self._all_holders, node_id, state, with_sum=with_sum))
            return
        if not self._is_cut:
            self._cut(job, state)
        records.append(self._head)
        packed = self._pack(
            self._before_id, job.id, self._behind_id, job.ctime, self._behind_ctime, body, self._behind_body
        )
        records.append(packed)
        records.append(_pack_end(SUM_MARK, _sum(packed), _END) if with_sum else _END)

    def _remember(self, job: Job, state: i64, node_id: bytes, *, with_sum: bool) -> None:
        """Remember the values of this job for those that follow."""
        self._is_cut = False
        self._node_id = node_id
        self._with_sum = with_sum
        self._queue = job.queue
        self._body_bytes = len(job.body)
        self._state = state
        self._expire_at_s = job.expire_at_s
        self._flags = i64(job.flags) & STORED_FLAGS
        self._repl = i64(job.repl)
        self._delay_s = job.delay_s
        self._retry_s = job.retry_s
        self._nacks = i64(job.nacks)
        self._additional_deliveries = i64(job.additional_deliveries)
        self._holders = job.delivered

    def _cut(self, job: Job, state: i64) -> None:
        """Build one record the slow way, and cut it where records differ."""
        self._is_cut = True
        delivered = job.delivered
        holders = self._all_holders.pack((self._node_id,) if delivered is None else delivered)
        packed = pack_for_disk(job, state, holders)
        body_at: i64 = BODY_AT + len(job.queue)
        self._head = head(len(packed) + SUM_BYTES if self._with_sum else len(packed))
        self._before_id = packed[:ID_AT]
        self._behind_id = packed[STATE_AT:CTIME_AT]
        self._behind_ctime = packed[DELAY_AT:body_at]
        self._behind_body = packed[body_at + len(job.body) :]
        self._pack = Struct(
            f"<{len(self._before_id)}s{len(job.id)}s{len(self._behind_id)}sQ"
            f"{len(self._behind_ctime)}s{len(job.body)}s{len(self._behind_body)}s"
        ).pack
