"""Records of changes, built fast: those of consecutive jobs are made from a template (`core.jobs.template`)."""

from __future__ import annotations

from struct import Struct
from typing import Final
from zlib import crc32

from mypy_extensions import i64

from disqued.core.cluster.holders import Holders
from disqued.core.jobs.codec import pack_for_disk
from disqued.core.jobs.job import ACKED, Job
from disqued.core.jobs.template import JobTemplate
from disqued.core.lifecycle.journal import Journal
from disqued.persistence.records import FORGET, SUM_BYTES, SUM_MARK, head, stored_state
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
        self._template = JobTemplate()
        self._node_id = b""
        self._with_sum: bool = False
        self._head = b""
        """The bytes before the job in a record that is made from the template."""

    def group(self, journal: Journal, node_id: bytes, *, with_sum: bool) -> bytes:
        """Return the records of all changes in the journal, and empty it."""
        records: list[bytes] = []
        for change in journal.changes:
            if isinstance(change, Job):
                if change.state != ACKED:  # a DELJOB follows
                    self.keep(records, change, stored_state(change, controlled=False), node_id, with_sum=with_sum)
            elif isinstance(change, bytes):
                records.append(FORGET)
                records.append(change)
                records.append(_END)
            elif isinstance(change, tuple):
                records.append(request(change))
        journal.changes.clear()  # the same list: the shell looks at it
        return b"".join(records)

    def keep(self, records: list[bytes], job: Job, state: i64, node_id: bytes, *, with_sum: bool) -> None:
        """Append the record of a job in this state to `records`, as several pieces."""
        template = self._template
        if node_id is not self._node_id or with_sum != self._with_sum or not template.matches(job, state):
            self._node_id = node_id
            self._with_sum = with_sum
            template.remember(job, state)
            records.append(whole_record(job, self._all_holders, node_id, state, with_sum=with_sum))
            return
        if not template.is_cut:
            self._cut(job, state)
        packed = template.fill(job)
        records.append(self._head)
        records.append(packed)
        records.append(_pack_end(SUM_MARK, _sum(packed), _END) if with_sum else _END)

    def _cut(self, job: Job, state: i64) -> None:
        """Make the template from this job, which matches the one before."""
        delivered = job.delivered
        holders = self._all_holders.pack((self._node_id,) if delivered is None else delivered)
        packed = pack_for_disk(job, state, holders)
        self._head = head(len(packed) + SUM_BYTES if self._with_sum else len(packed))
        self._template.cut(job, packed, 0)
