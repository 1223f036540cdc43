"""Records of changes, built fast: those of jobs that differ little are made from a template (`core.jobs.template`).

There are several templates, because the jobs of several queues alternate. Each queue uses one of them.
"""

from __future__ import annotations

from struct import Struct
from typing import Final
from zlib import crc32

from mypy_extensions import i64

from disqued.core.cluster.holders import Holders
from disqued.core.jobs.codec import ctime_on_disk, expiry_on_disk, pack_for_disk
from disqued.core.jobs.job import ACKED, Job
from disqued.core.jobs.template import JobTemplate
from disqued.core.lifecycle.journal import Journal
from disqued.core.lifecycle.records import SUM_BYTES, SUM_MARK, RecordTable, Words
from disqued.persistence.records import EXTENDED, FORGET, head, stored_state
from disqued.persistence.records import keep as whole_record
from disqued.releases import EXTENDED_FORMAT
from disqued.resp.writer import request

_sum: Final = crc32
"""Looked up once, not for each job."""
_pack_end: Final = Struct(f"<{len(SUM_MARK)}sI2s").pack
_END: Final = b"\r\n"
_TEMPLATES: Final = 16


class RecordTemplate(JobTemplate):
    """A template and the bytes before the job in the record."""

    def __init__(self) -> None:
        super().__init__()
        self.head = b""


class RecordWriter:
    """Writes the records of one node."""

    def __init__(self, holders: Holders) -> None:
        self._all_holders = holders
        self._templates = [RecordTemplate() for _ in range(_TEMPLATES)]
        self._node_id = b""
        self._with_sum: bool = False
        self.ahead_s: i64 = 0
        """How far the wall clock is ahead of the node's time."""
        self.extended: bool = False
        """Whether records of the extended format were written, and the record that says so before them."""

    def _extend(self, records: list[bytes]) -> None:
        """Say that records of the extended format follow."""
        if not self.extended:
            self.extended = True
            records.append(EXTENDED)

    def group(self, journal: Journal, node_id: bytes, *, with_sum: bool) -> bytes:
        """Return the records of all changes in the journal, and empty it.

        Groups may be in two files, so each of them says which format it needs.
        """
        records: list[bytes] = []
        self.extended = False
        for change in journal.changes:
            if isinstance(change, Job):
                if change.state != ACKED:  # a DELJOB follows
                    self.keep(records, change, stored_state(change, controlled=False), node_id, with_sum=with_sum)
            elif isinstance(change, bytes):
                records.append(FORGET)
                records.append(change)
                records.append(_END)
            elif isinstance(change, tuple):
                self.note(records, change, journal.formats)
        journal.changes.clear()  # the same list: the shell looks at it
        if self.extended:
            journal.note_format(EXTENDED_FORMAT)
        return b"".join(records)

    def note(self, records: list[bytes], words: Words, formats: RecordTable) -> None:
        """Append a record of a kind that a room declares."""
        known = formats.get(words[0])
        assert known is not None, words[0]
        if known.is_sealed:
            self._extend(records)
        records.append(request(known.closed(words)))

    def keep(self, records: list[bytes], job: Job, state: i64, node_id: bytes, *, with_sum: bool) -> None:
        """Append the record of a job in this state to `records`, as several pieces."""
        if job.extra is not None:
            self._extend(records)
            records.append(
                whole_record(job, self._all_holders, node_id, state, with_sum=with_sum, ahead_s=self.ahead_s)
            )
            return
        if node_id is not self._node_id or with_sum != self._with_sum:
            self._templates = [RecordTemplate() for _ in range(_TEMPLATES)]
            self._node_id = node_id
            self._with_sum = with_sum
        queue = job.queue
        size: i64 = len(queue)
        last: i64 = queue[size - 1] if size > 0 else 0
        template = self._templates[(last + size) & (_TEMPLATES - 1)]
        if not template.matches(job, state):
            template.remember(job, state)
            records.append(
                whole_record(job, self._all_holders, node_id, state, with_sum=with_sum, ahead_s=self.ahead_s)
            )
            return
        if not template.is_cut:
            self._cut(template, job, state)
        ahead_s = self.ahead_s
        packed = template.fill(job, expiry_on_disk(job, ahead_s), ctime_on_disk(job, ahead_s))
        records.append(template.head)
        records.append(packed)
        records.append(_pack_end(SUM_MARK, _sum(packed), _END) if with_sum else _END)

    def _cut(self, template: RecordTemplate, job: Job, state: i64) -> None:
        """Make a template from this job, which matches the one before."""
        delivered = job.delivered
        holders = self._all_holders.pack((self._node_id,) if delivered is None else delivered)
        packed = pack_for_disk(job, state, holders, self.ahead_s)
        template.head = head(len(packed) + SUM_BYTES if self._with_sum else len(packed))
        template.cut(job, packed, 0)
