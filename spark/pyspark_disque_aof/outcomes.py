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

from disqued.core.jobs.codec import CTIME_AT, ID_AT, read_u32
from disqued.core.jobs.jobid import JOB_ID_BYTES
from disqued.persistence.parse import DELJOB, LOADJOB, Entry

NANOSECONDS_PER_US: Final = 1000


@dataclass(slots=True)
class Outcome:
    """The outcome of a job, with the offsets of its LOADJOB and DELJOB. Times are in microseconds since the epoch."""

    offset: int
    end_offset: int | None = None
    ended_after_us: int | None = None
    """The creation time of the newest job before the DELJOB."""
    ended_before_us: int | None = None
    """The creation time of the first newer job after the DELJOB."""


def id_of(entry: Entry) -> bytes:
    """Return the job ID of a LOADJOB or DELJOB."""
    word = entry.words[1]
    return word if entry.words[0] == DELJOB else word[ID_AT : ID_AT + JOB_ID_BYTES]


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
            self._end(entry)

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

    def _end(self, entry: Entry) -> None:
        outcome = self.by_id.get(entry.words[1])
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
