"""Converts the records of an append-only file to those that the original loads; it does not access the files.

The original reads LOADJOB, DELJOB and PAUSE. It runs any other record as a command, and exits if it does not know it.
Of a LOADJOB it reads the job and ignores what follows.

A job that waits for its parents is left out: the original would deliver it too early. When its parents are done, it is
a plain job for the original as well.
"""

from __future__ import annotations

from struct import Struct
from typing import Final
from zlib import crc32

from disqued.core.fates.fate import DEAD, DONE, MOVED
from disqued.core.fates.stored import RECORD, stored
from disqued.core.jobs.attributes import AFTER, ATTRIBUTES, Attributes, described
from disqued.core.jobs.job import Job
from disqued.core.jobs.littleendian import read_u32
from disqued.core.jobs.parents import unmet_of
from disqued.core.lifecycle.records import SUM_MARK
from disqued.persistence.parse import DELJOB, FORMAT, LENGTH_BYTES, LOADJOB, Entry, job_of
from disqued.resp.writer import request

_SUM: Final = Struct("<I")


class KindCount:
    """What became of the records of one kind."""

    def __init__(self) -> None:
        self.copied = 0
        """Records that are as they were."""
        self.converted = 0
        """Records of jobs that lost their attributes."""
        self.ended = 0
        """Records of finished jobs, in whose place there is a DELJOB."""
        self.left_out = 0


class Conversion:
    """Converts one file, record by record, and counts."""

    def __init__(self) -> None:
        self.kinds: dict[str, KindCount] = {}
        """The counts, by kind of record."""
        self.attributes: dict[str, int] = {}
        """The attributes that were left out, by name."""
        self._missing: dict[bytes, str] = {}
        """Why the new file lacks a job, by the ID of the job."""

    def record(self, entry: Entry) -> bytes:
        """The record for the original of a sound record; empty if it is left out."""
        words = entry.words
        name = words[0].decode()
        count = self.kinds.setdefault(name, KindCount())
        if words[0] == FORMAT or (entry.format is not None and entry.format.is_sealed):
            ended = _ended(entry)
            if ended is not None:
                self._missing.pop(ended, None)
                count.ended += 1
                return request((DELJOB, ended))
            count.left_out += 1
            return b""
        if words[0] == LOADJOB:
            job = job_of(entry).job
            extra = job.extra
            if extra is not None and extra.held:
                self._missing[job.id] = _waits(job, extra)
                count.left_out += 1
                return b""
            if extra is not None:
                self._missing.pop(job.id, None)
                self._count_attributes(extra)
                count.converted += 1
                return request((LOADJOB, _without_attributes(words[1])))
        if words[0] == DELJOB:
            self._missing.pop(words[1], None)
        count.copied += 1
        return request(words)

    def _count_attributes(self, extra: Attributes) -> None:
        for name, _ in described(extra):
            self.attributes[name] = self.attributes.get(name, 0) + 1

    def report(self) -> list[str]:
        """What became of the records, a line for each kind, and of the attributes; then each job that is missing."""
        lines = [_line(name, count) for name, count in self.kinds.items()]
        if self.attributes:
            counted = [(kind.name, self.attributes.get(kind.name, 0)) for kind in ATTRIBUTES]
            lines.append("Attributes left out: " + ", ".join(f"{name} {number}" for name, number in counted if number))
        return lines + [f"Job left out: {job_id.decode()} {why}" for job_id, why in self._missing.items()]


def _line(name: str, count: KindCount) -> str:
    parts = (
        (count.copied, "copied"),
        (count.converted, "converted to plain jobs"),
        (count.ended, "replaced by DELJOB"),
        (count.left_out, "left out"),
    )
    return f"{name}: " + ", ".join(f"{number} {text}" for number, text in parts if number)


def _waits(job: Job, extra: Attributes) -> str:
    """Why a held job is left out: its queue, and the first of the jobs that it waits for."""
    waits_for = unmet_of(extra.get(AFTER) or b"")
    more = f" and {len(waits_for) - 1} more" if len(waits_for) > 1 else ""
    return f"of queue {job.queue!r} waits for {waits_for[0].decode()}{more}; the original would deliver it too early"


def _ended(entry: Entry) -> bytes | None:
    """The ID of the job that a RECORD ends; None for other records, and if the job was not acknowledged."""
    opened = None if entry.format is None or entry.words[0] != RECORD else entry.format.opened(entry.words)
    found = None if opened is None else stored(opened[1])
    return found.job_id if found is not None and found.fate.outcome in (DONE, DEAD, MOVED) else None


def _without_attributes(packed: bytes) -> bytes:
    """The job of a LOADJOB with its attributes cut off, and the checksum of what is left."""
    job = packed[: LENGTH_BYTES + read_u32(packed, 0)]
    return job + SUM_MARK + _SUM.pack(crc32(job))
