"""Converts the records of an append-only file to those that the original loads; it does not access the files.

The original reads LOADJOB, DELJOB and PAUSE. It runs any other record as a command, and exits if it does not know it.
Of a LOADJOB it reads the job and ignores what follows.
"""

from __future__ import annotations

from struct import Struct
from typing import Final
from zlib import crc32

from disqued.core.jobs.attributes import ATTRIBUTES, Attributes, described
from disqued.core.jobs.littleendian import read_u32
from disqued.core.lifecycle.records import SUM_MARK
from disqued.persistence.parse import FORMAT, LENGTH_BYTES, LOADJOB, Entry, job_of
from disqued.resp.writer import request

_SUM: Final = Struct("<I")


class KindCount:
    """What became of the records of one kind."""

    def __init__(self) -> None:
        self.copied = 0
        """Records that are as they were."""
        self.converted = 0
        """Records of jobs that lost their attributes."""
        self.left_out = 0


class Conversion:
    """Converts one file, record by record, and counts."""

    def __init__(self) -> None:
        self.kinds: dict[str, KindCount] = {}
        """The counts, by kind of record."""
        self.attributes: dict[str, int] = {}
        """The attributes that were left out, by name."""

    def record(self, entry: Entry) -> bytes:
        """The record for the original of a sound record; empty if it is left out."""
        words = entry.words
        name = words[0].decode()
        count = self.kinds.setdefault(name, KindCount())
        if words[0] == FORMAT or (entry.format is not None and entry.format.is_sealed):
            count.left_out += 1
            return b""
        if words[0] == LOADJOB:
            extra = job_of(entry).job.extra
            if extra is not None:
                self._count_attributes(extra)
                count.converted += 1
                return request((LOADJOB, _without_attributes(words[1])))
        count.copied += 1
        return request(words)

    def _count_attributes(self, extra: Attributes) -> None:
        for name, _ in described(extra):
            self.attributes[name] = self.attributes.get(name, 0) + 1

    def report(self) -> list[str]:
        """What became of the records, a line for each kind, and of the attributes."""
        lines = [_line(name, count) for name, count in self.kinds.items()]
        if self.attributes:
            counted = [(kind.name, self.attributes.get(kind.name, 0)) for kind in ATTRIBUTES]
            lines.append("Attributes left out: " + ", ".join(f"{name} {number}" for name, number in counted if number))
        return lines


def _line(name: str, count: KindCount) -> str:
    parts = (
        (count.copied, "copied"),
        (count.converted, "converted to plain jobs"),
        (count.left_out, "left out"),
    )
    return f"{name}: " + ", ".join(f"{number} {text}" for number, text in parts if number)


def _without_attributes(packed: bytes) -> bytes:
    """The job of a LOADJOB with its attributes cut off, and the checksum of what is left."""
    job = packed[: LENGTH_BYTES + read_u32(packed, 0)]
    return job + SUM_MARK + _SUM.pack(crc32(job))
