"""Determines what became of each job in a file: still held at the end of the log, or finished, and roughly when.

A LOADJOB adds a job unless the log already holds it, and a DELJOB finishes it. The log does not record why a job ended
(acknowledged, deleted, transferred to another node, expired, or delivered at most once). Its only times are the
creation times of jobs. They bound the other times, because the log is written in order: every record after a job was
written after the creation of that job.

A file is read twice, so that bodies need not stay in memory. `Outcomes` remembers the offset of the record and the
outcome of each job. On the second pass it returns for each record whether that record becomes a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from disqued.core.fates.fate import DEAD, DONE, MOVED
from disqued.core.fates.stored import RECORD, stored
from disqued.core.jobs.attributes import Attributes, merged
from disqued.core.jobs.codec import CTIME_AT, ID_AT
from disqued.core.jobs.job import Job
from disqued.core.jobs.jobid import JOB_ID_BYTES
from disqued.core.jobs.littleendian import read_u32
from disqued.delivery.postpone import POSTPONE_RECORD, parse_record
from disqued.persistence.parse import DELJOB, LOADJOB, Entry, job_of

NANOSECONDS_PER_US: Final = 1000


@dataclass(frozen=True, slots=True)
class Latest:
    """The counters and attributes of a job, which a later record may change."""

    nacks: int
    deliveries: int
    extra: Attributes | None

    @classmethod
    def of(cls, job: Job) -> Latest:
        """Return those of a record."""
        return cls(int(job.nacks), int(job.additional_deliveries), job.extra)

    def joined(self, earlier: Latest) -> Latest:
        """Return those of this record and of one before it, as a node joins them."""
        return Latest(
            max(self.nacks, earlier.nacks),
            max(self.deliveries, earlier.deliveries),
            merged(earlier.extra, self.extra),
        )


@dataclass(slots=True)
class Outcome:
    """The outcome of a job, with the offsets of its LOADJOB and DELJOB. Times are in microseconds since the epoch."""

    offset: int
    end_offset: int | None = None
    ended_after_us: int | None = None
    """The creation time of the newest job before the DELJOB."""
    ended_before_us: int | None = None
    """The creation time of the first newer job after the DELJOB."""
    latest: Latest | None = None
    """What later records of the job say; None if there is none."""

    def hear(self, latest: Latest) -> None:
        """Note what a later record says."""
        self.latest = latest if self.latest is None else latest.joined(self.latest)


def id_of(entry: Entry) -> bytes:
    """Return the job ID of a LOADJOB or DELJOB."""
    word = entry.words[1]
    return word if entry.words[0] == DELJOB else word[ID_AT : ID_AT + JOB_ID_BYTES]


def delay_of(entry: Entry) -> tuple[bytes, int] | None:
    """Return the job ID and the NACKs of a valid POSTPONE; None for other records."""
    opened = None if entry.format is None else entry.format.opened(entry.words)
    if opened is None or opened[0] != POSTPONE_RECORD:
        return None
    job_id, _, nacks = parse_record(opened[1])
    return job_id, nacks


def created_us(entry: Entry) -> int:
    """Return the creation time of the job of a LOADJOB, in microseconds since the Unix epoch."""
    packed = entry.words[1]
    return (int(read_u32(packed, CTIME_AT + 4)) << 32 | int(read_u32(packed, CTIME_AT))) // NANOSECONDS_PER_US


def share_of(job_id: bytes, shares: int) -> int:
    """Return which of `shares` tasks processes a job."""
    return crc32(job_id) % shares


class Outcomes:
    """Reads the records of one file in order, and keeps the outcomes of the jobs of one share, without their bodies."""

    def __init__(self, share: int = 0, shares: int = 1) -> None:
        self.by_id: dict[bytes, Outcome] = {}
        self._share = share
        self._shares = shares
        self._newest_us = 0
        self._open_ends: list[Outcome] = []
        """Finished jobs without a newer job after their DELJOB so far."""

    def apply(self, entry: Entry) -> None:
        """Process the next valid record."""
        command = entry.words[0]
        if command == LOADJOB:
            self._keep(entry)
        elif command == DELJOB:
            self._end(entry, entry.words[1])
        elif command == RECORD:
            self._end_by_record(entry)
        else:
            self._delay(entry)

    def apply_all(self, entries: Iterable[Entry]) -> None:
        """Process all valid records."""
        for entry in entries:
            self.apply(entry)

    def _keep(self, entry: Entry) -> None:
        created = created_us(entry)
        if created > self._newest_us:
            self._newest_us = created
            for outcome in self._open_ends:
                outcome.ended_before_us = created
            self._open_ends.clear()
        job_id = id_of(entry)
        if self._shares > 1 and share_of(job_id, self._shares) != self._share:
            return
        known = self.by_id.get(job_id)
        if known is None or known.end_offset is not None:
            self.by_id[job_id] = Outcome(int(entry.offset))
        else:
            known.hear(Latest.of(job_of(entry).job))

    def _delay(self, entry: Entry) -> None:
        delay = delay_of(entry)
        outcome = None if delay is None else self.by_id.get(delay[0])
        if delay is not None and outcome is not None and outcome.end_offset is None:
            outcome.hear(Latest(delay[1], 0, None))

    def _end_by_record(self, entry: Entry) -> None:
        opened = None if entry.format is None else entry.format.opened(entry.words)
        found = None if opened is None else stored(opened[1])
        if found is not None and found.fate.outcome in (DONE, DEAD, MOVED):
            self._end(entry, found.job_id)

    def _end(self, entry: Entry, job_id: bytes) -> None:
        outcome = self.by_id.get(job_id)
        if outcome is not None and outcome.end_offset is None:
            outcome.end_offset = int(entry.offset)
            outcome.ended_after_us = self._newest_us
            self._open_ends.append(outcome)

    def of(self, entry: Entry) -> Outcome | None:
        """Return the outcome of the job if this record becomes its row; otherwise None."""
        if entry.words[0] != LOADJOB:
            return None
        outcome = self.by_id.get(id_of(entry))
        return outcome if outcome is not None and outcome.offset == int(entry.offset) else None
