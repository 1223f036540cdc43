"""The contents of an append-only file, read without the code of the broker that loads it.

Records are requests of the client protocol, so `hiredis` parses them. It ignores what is between them, so each is
compared with its encoding. Jobs are decoded by the codec of the bus.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from zlib import crc32

import hiredis

from disqued.core.jobs.codec import CorruptJob, unpack
from disqued.core.jobs.job import Job
from disqued.core.queues.queue import PAUSE_NAMES

LOG_NAME: Final = "disque.aof"
_SUM_MARK: Final = b"CRC#"
_NEXT: Final = b"\r\n*"
"""The end of a record and the beginning of the next one. No job of the simulator has these bytes."""


class Contents:
    """The jobs and pauses that a file restores."""

    def __init__(self, data: bytes) -> None:
        self.jobs: dict[bytes, Job] = {}
        self.pauses: dict[bytes, bytes] = {}
        """The pause state of each paused queue."""
        self.sound = True
        """Whether all of it is readable, except for a truncated end."""
        self.records = 0
        self.ended = 0
        """Records of finished jobs, and the format that they need."""
        reader = hiredis.Reader(notEnoughData=None)
        reader.feed(data)
        at = 0
        while self.sound:
            try:
                record = reader.gets()
            except hiredis.HiredisError:
                self.sound = False
                return
            if record is None:
                self.sound = _NEXT not in data[at:]  # a wrong length may lead behind the end
                return
            self.records += 1
            written = _written(record)
            self.sound = data.startswith(written, at) and self._do(record)
            at += len(written)

    def _do(self, record: object) -> bool:
        match record:
            case [b"LOADJOB", bytes(blob)]:
                return self._keep(blob)
            case [b"DELJOB", bytes(job_id)]:
                self.jobs.pop(job_id, None)
            case [b"PAUSE", bytes(queue), bytes(word)] if word in PAUSE_NAMES:
                self.pauses[queue] = word
                if word == b"none":
                    del self.pauses[queue]
            case [b"FORMAT", bytes()]:
                self.ended += 1
            case [b"RECORD", bytes(sealed)]:
                self.ended += 1
                job_id, _, outcome, *_ = (*sealed[4:].split(b" ", 3), b"", b"")
                if outcome in {b"done", b"dead", b"moved"}:  # it stands for a DELJOB, too
                    self.jobs.pop(job_id, None)
                return _is_sealed(b"RECORD", sealed)
            case [b"CLAIM" | b"LOGENTRY" | b"POSTPONE" | b"ENDRECORD" as name, bytes(sealed)]:
                return _is_sealed(name, sealed)
            case _:
                return False
        return True

    def _keep(self, blob: bytes) -> bool:
        try:
            unpacked = unpack(blob, 0, len(blob))
        except CorruptJob:
            return False
        end = int(unpacked.end)
        if end < len(blob) and blob[end:] != _SUM_MARK + crc32(blob[:end]).to_bytes(4, "little"):
            return False
        self.jobs.setdefault(unpacked.job.id, unpacked.job)
        return True


def _is_sealed(name: bytes, sealed: bytes) -> bool:
    """Whether the content of a record has the right length and checksum."""
    summed = name + sealed[:-8]
    size = int.from_bytes(sealed[:4], "little")
    return len(sealed) == 4 + size + 8 and sealed[-8:] == _SUM_MARK + crc32(summed).to_bytes(4, "little")


def _written(record: object) -> bytes:
    """The encoding of a record."""
    words = record if isinstance(record, list) else []
    parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in words if isinstance(word, bytes)]
    return b"*%d\r\n" % len(words) + b"".join(parts)


def contents(files: Mapping[str, bytearray]) -> Contents:
    """The contents of the append-only file; empty if there is none."""
    return Contents(bytes(files.get(LOG_NAME, b"")))
