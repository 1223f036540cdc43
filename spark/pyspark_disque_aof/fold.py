"""What became of each job that a file tells of: kept up to the end, or finished, and about when.

A LOADJOB keeps a job, unless it is kept already; a DELJOB ends it. The log does not say why a job ended (acknowledged,
deleted, handed over, over its time, delivered at most once), and has no times but those when jobs were created. As it
is written in order, these bound the others: what stands behind a job was written after that was created.

A file is read twice, so that bodies need not be kept: `Lives` remembers per job where its record stands and what came
of it, and tells the second time for each record whether it is the one that makes the row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from disqued.core.jobs.codec import CTIME_AT, ID_AT, read_u32
from disqued.core.jobs.jobid import JOB_ID_BYTES
from disqued.persistence.reader import DELJOB, LOADJOB, Entry

NANOSECONDS_PER_US: Final = 1000


@dataclass(slots=True)
class Life:
    """What came of a job: where its record begins, and where the one is that ended it. Times are unix microseconds."""

    offset: int
    end_offset: int | None = None
    ended_after_us: int | None = None
    """When the youngest job was created of those that stand before the end,"""
    ended_before_us: int | None = None
    """and the first younger one behind it."""


def id_of(entry: Entry) -> bytes:
    """The ID in a LOADJOB or a DELJOB."""
    word = entry.words[1]
    return word if entry.words[0] == DELJOB else word[ID_AT : ID_AT + JOB_ID_BYTES]


def created_us(entry: Entry) -> int:
    """When the job of a LOADJOB was created."""
    packed = entry.words[1]
    return (int(read_u32(packed, CTIME_AT + 4)) << 32 | int(read_u32(packed, CTIME_AT))) // NANOSECONDS_PER_US


def share_of(job_id: bytes, shares: int) -> int:
    """Which of so many tasks has a job."""
    return crc32(job_id) % shares


class Lives:
    """Takes the records of one file in order and remembers the jobs of one share, without their bodies."""

    def __init__(self, share: int = 0, shares: int = 1) -> None:
        self.by_id: dict[bytes, Life] = {}
        self._share = share
        self._shares = shares
        self._youngest_us = 0
        self._open_ends: list[Life] = []
        """Ended jobs behind which no younger one was created so far."""

    def take(self, entry: Entry) -> None:
        """The next sound record."""
        command = entry.words[0]
        if command == LOADJOB:
            self._keep(entry)
        elif command == DELJOB:
            self._end(entry)

    def take_all(self, entries: Iterable[Entry]) -> None:
        """All of them."""
        for entry in entries:
            self.take(entry)

    def _keep(self, entry: Entry) -> None:
        created = created_us(entry)
        if created > self._youngest_us:
            self._youngest_us = created
            for life in self._open_ends:
                life.ended_before_us = created
            self._open_ends.clear()
        job_id = id_of(entry)
        if self._shares > 1 and share_of(job_id, self._shares) != self._share:
            return
        known = self.by_id.get(job_id)
        if known is None or known.end_offset is not None:
            self.by_id[job_id] = Life(int(entry.offset))

    def _end(self, entry: Entry) -> None:
        life = self.by_id.get(entry.words[1])
        if life is not None and life.end_offset is None:
            life.end_offset = int(entry.offset)
            life.ended_after_us = self._youngest_us
            self._open_ends.append(life)

    def of(self, entry: Entry) -> Life | None:
        """What came of the job whose row this record makes; None if it makes none."""
        if entry.words[0] != LOADJOB:
            return None
        life = self.by_id.get(id_of(entry))
        return life if life is not None and life.offset == int(entry.offset) else None
