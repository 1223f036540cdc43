"""Parses one record of an append-only file, and verifies the job in it."""

from __future__ import annotations

from typing import Final
from zlib import crc32

from mypy_extensions import i64, mypyc_attr

from disqued.bus.frame import NODE_ID_BYTES
from disqued.core.jobs.attributes import HEAD_BYTES, MAX_BLOCK_BYTES, block_bytes
from disqued.core.jobs.codec import BODY_AT, ID_AT, LEAST_BYTES, MAX_HOLDERS, CorruptJob, Unpacked, unpack
from disqued.core.jobs.job import ACTIVE, QUEUED
from disqued.core.jobs.jobid import JOB_ID_BYTES, is_job_id
from disqued.core.jobs.littleendian import read_u32
from disqued.core.lifecycle.records import SUM_BYTES, SUM_MARK, RecordFormat, RecordTable
from disqued.resp.limits import MAX_ARGUMENTS, MAX_BULK_BYTES

NO_SUM: Final = 0
SUM_RIGHT: Final = 1
SUM_WRONG: Final = 2
"""The result for the checksum of a job. It is wrong, too, if the bytes after the job are not a checksum."""

SKIPPED: Final = 0
"""A record follows the damage."""
TORN: Final = 1
"""The end of the file cuts a record off, or it ends in NUL bytes: a write was not completed."""
GARBAGE: Final = 2
"""Nothing up to the end of the file is certain to be a record: what looks like one may be in the body of a job."""

LOADJOB: Final = b"LOADJOB"
DELJOB: Final = b"DELJOB"
FORMAT: Final = b"FORMAT"
"""The record with which a file begins whose format is not the first one. Its word is the number of the format."""
_OWN: Final = (LOADJOB, DELJOB, FORMAT)
_OWN_WORDS: Final = 2
"""The number of words of each of these records."""
LOAD_HEAD: Final = b"*2\r\n$7\r\nLOADJOB\r\n$"
LOAD_HEAD_BYTES: Final = 18
MAX_DIGITS: Final = 10
LENGTH_BYTES: Final = 4
GREATEST_BYTES: Final = LEAST_BYTES + 2 * MAX_BULK_BYTES + MAX_HOLDERS * NODE_ID_BYTES + MAX_BLOCK_BYTES
"""A job with the longest name, the longest body, the most holders and the most attributes."""

_HEX: Final = b"0123456789abcdef"

_CR: Final = 13
_LF: Final = 10
_STAR: Final = 42
_DOLLAR: Final = 36
_BAD: Final = 0
MORE: Final = -1
_NOWHERE: Final = -2


@mypyc_attr(acyclic=True)
class Stretch:
    """A range of the file, from `offset` up to `end`."""

    def __init__(self, offset: i64, end: i64) -> None:
        self.offset: i64 = offset
        self.end: i64 = end


@mypyc_attr(acyclic=True)
class Entry(Stretch):
    """A record. The first of its `words` is the command, in capitals."""

    def __init__(self, offset: i64, end: i64, words: list[bytes], checksum: i64) -> None:
        self.offset = offset
        self.end = end
        self.words = words
        self.checksum: i64 = checksum
        self.format: RecordFormat | None = None
        """For a record of a kind that a room declares: its format."""


@mypyc_attr(acyclic=True)
class Damage(Stretch):
    """Bytes that are not a record; `why` says what is wrong at `offset`, `kind` what follows."""

    def __init__(self, offset: i64, end: i64, kind: i64, why: str) -> None:
        self.offset = offset
        self.end = end
        self.kind: i64 = kind
        self.why = why


def checksum_of(packed: bytes) -> i64:
    """Verify the checksum of the job in a LOADJOB: NO_SUM, SUM_RIGHT or SUM_WRONG."""
    size: i64 = len(packed)
    if size < LEAST_BYTES:
        return SUM_WRONG
    job_bytes: i64 = read_u32(packed, 0) + LENGTH_BYTES
    if size == job_bytes:
        return NO_SUM
    if job_bytes + HEAD_BYTES <= size:
        job_bytes += block_bytes(packed, job_bytes, size)
    mark_end: i64 = job_bytes + len(SUM_MARK)
    if size != job_bytes + SUM_BYTES or packed[job_bytes:mark_end] != SUM_MARK:
        return SUM_WRONG
    return SUM_RIGHT if crc32(packed[:job_bytes]) == int(read_u32(packed, mark_end)) else SUM_WRONG


def job_of(entry: Entry) -> Unpacked:
    """The job of a LOADJOB. Raises CorruptJob if its checksum is wrong or it is not a job that a file can have."""
    if entry.checksum == SUM_WRONG:
        raise CorruptJob("the checksum of the job is wrong")
    packed = entry.words[1]
    unpacked = unpack(packed, 0, len(packed))
    state = unpacked.state
    if state != ACTIVE and state != QUEUED:
        raise CorruptJob(f"no job is kept in state {state}")
    return unpacked


def _number(data: bytes, at: i64, size: i64) -> tuple[i64, i64]:
    """The number at `at` and where the next line begins; MORE or _NOWHERE as the number if there is none."""
    value: i64 = 0
    here: i64 = at
    last: i64 = min(size, at + MAX_DIGITS)
    while here < last:
        digit: i64 = data[here] - 48
        if digit < 0 or digit > 9:
            break
        value = value * 10 + digit
        here += 1
    if here == size or (here + 1 == size and here > at and data[here] == _CR):
        return MORE, 0
    if here == at or here + 1 == size or data[here] != _CR or data[here + 1] != _LF:
        return _NOWHERE, 0
    return value, here + 2


def parse(data: bytes, at: i64, size: i64, words: list[bytes], table: RecordTable) -> i64:
    """Read the record that begins at `at`, as if `data` ended at `size`; its words are added to `words`.

    Returns where it ends, or 0 if this is no record, or less than 0 if it is cut off: so many bytes are needed from
    `at` on to read on.
    """
    if at + LOAD_HEAD_BYTES < size and data[at : at + LOAD_HEAD_BYTES] == LOAD_HEAD:
        return _parse_loadjob(data, at, size, words)
    if at >= size:
        return -1
    if data[at] != _STAR:
        return _BAD
    count, here = _number(data, at + 1, size)
    more: i64 = -(size - at) - max((size - at) // 2, 1)  # doubling it keeps long rows of words linear
    if count == MORE:
        return more
    if count < 1 or count > MAX_ARGUMENTS:
        return _BAD
    while count > 0:
        if here == size:
            return more
        if data[here] != _DOLLAR:
            return _BAD
        length, start = _number(data, here + 1, size)
        if length == MORE:
            return more
        forgets: bool = len(words) > 0 and words[0] == DELJOB
        if length < 0 or length > GREATEST_BYTES or (forgets and length != JOB_ID_BYTES):
            return _BAD
        stop: i64 = start + length
        if stop + 2 > size:
            return -max(stop + 2 - at, -more)
        if data[stop] != _CR or data[stop + 1] != _LF:
            return _BAD
        word = data[start:stop]
        if forgets and not is_job_id(word):
            return _BAD
        words.append(word if words else word.upper())
        here = stop + 2
        count -= 1
    return here if len(words) == _words_of(words, table) else _BAD


def _words_of(words: list[bytes], table: RecordTable) -> i64:
    """How many words a record of this kind has; as many as this one if the kind is unknown."""
    name = words[0]
    if name in _OWN:
        return _OWN_WORDS
    known = table.get(name)
    return len(words) if known is None else known.words


def _parse_loadjob(data: bytes, at: i64, size: i64, words: list[bytes]) -> i64:
    """`parse` for a LOADJOB. A job with attributes always has a checksum."""
    length, start = _number(data, at + LOAD_HEAD_BYTES, size)
    if length == MORE or (length >= LEAST_BYTES and start + LENGTH_BYTES > size):
        return -(size - at) - 1
    if length < LEAST_BYTES or length > GREATEST_BYTES + SUM_BYTES:
        return _BAD
    job_bytes: i64 = read_u32(data, start) + LENGTH_BYTES
    if length != job_bytes and length != job_bytes + SUM_BYTES:
        block_at: i64 = start + job_bytes
        if length < job_bytes + HEAD_BYTES + SUM_BYTES:
            return _BAD
        if block_at + HEAD_BYTES > size:
            return at - block_at - HEAD_BYTES
        if length != job_bytes + block_bytes(data, block_at, size) + SUM_BYTES:
            return _BAD
    stop: i64 = start + length
    if stop + 2 > size:
        return at - stop - 2
    if data[stop] != _CR or data[stop + 1] != _LF:
        return _BAD
    words.append(LOADJOB)
    words.append(data[start:stop])
    return stop + 2


def fits_together(data: bytes, at: i64) -> bool:
    """Whether what is there of the LOADJOB at `at`, which the end of the data cuts off, fits together."""
    size: i64 = len(data)
    length, start = _number(data, at + LOAD_HEAD_BYTES, size)
    if length < 0 or start + BODY_AT - LENGTH_BYTES > size:
        return True
    if not is_job_id(data[start + ID_AT : start + ID_AT + JOB_ID_BYTES]):
        return False
    end: i64 = start + read_u32(data, start) + LENGTH_BYTES
    body_at: i64 = start + BODY_AT + read_u32(data, start + BODY_AT - 2 * LENGTH_BYTES)
    if body_at + LENGTH_BYTES > end:
        return False
    if body_at > size:
        return True
    holders_bytes: i64 = end - body_at - read_u32(data, body_at - LENGTH_BYTES) - LENGTH_BYTES
    return holders_bytes >= 0 and holders_bytes % NODE_ID_BYTES == 0


def end_of_job(data: bytes, at: i64) -> tuple[i64, i64]:
    """Where the job at `at` ends whose ID is there, by the lengths inside it alone, and where its body ends.

    0 if these do not fit together; less than 0 if `data` ends before: minus the position that is needed.
    """
    size: i64 = len(data)
    body_at: i64 = at + BODY_AT
    if body_at > size:
        return -body_at, 0
    body_at += read_u32(data, body_at - 2 * LENGTH_BYTES)
    if body_at - at > MAX_BULK_BYTES + BODY_AT:
        return _BAD, 0
    if body_at > size:
        return -body_at, 0
    body_bytes: i64 = read_u32(data, body_at - LENGTH_BYTES)
    if body_bytes > MAX_BULK_BYTES:
        return _BAD, 0
    body_end: i64 = body_at + body_bytes
    end: i64 = body_end + LENGTH_BYTES
    if end > size:
        return -end, 0
    holders: i64 = read_u32(data, body_end)
    if holders == 0 or holders > MAX_HOLDERS:
        return _BAD, 0
    end += holders * NODE_ID_BYTES
    if end + LENGTH_BYTES > size:
        return -(end + LENGTH_BYTES), 0
    if data[end - NODE_ID_BYTES : end].strip(_HEX):
        return _BAD, 0
    if end + HEAD_BYTES <= size:
        end += block_bytes(data, end, size)
    if end + LENGTH_BYTES > size:
        return -(end + LENGTH_BYTES), 0
    if data[end : end + LENGTH_BYTES] == SUM_MARK:
        end += SUM_BYTES
        return (end if end <= size else -end), body_end
    return (end if data[end] == _CR and data[end + 1] == _LF else _BAD), body_end


def explain(data: bytes, at: i64) -> str:
    """What is wrong with the bytes at `at`, of which `parse` says that they are no record."""
    if data[at] != _STAR:
        return f"a record begins with '*', not with {bytes(data[at : at + 1])!r}"
    if data[at : at + LOAD_HEAD_BYTES] == LOAD_HEAD:
        return "the lengths in and around the job differ, or they do not lead to the next record"
    return "a length is wrong, or there is no end of line where it should be"
