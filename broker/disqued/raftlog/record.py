"""The format of records, and finding them in bytes that may be damaged.

A record is a header of 48 bytes and its payload, filled up with zeros to a multiple of 8 bytes:

    magic 4 | CRC-32 4 | length of the payload 4 | kind 1 | kind of the entry 1 | 0 2
    group 8 | term 8 | index 8 | time 8

All numbers are little-endian. The CRC-32 covers everything behind it and starts with the seed of the segment
(`segment_seed`), so that a record of another log, or a record that somebody puts into the body of a job, is not taken
for one of this segment. Only the first record of a segment, which says what the seed is, has the seed 0.

| kind | what it is | payload |
| --- | --- | --- |
| SEGMENT | the first record of a segment; index: its number | version, data ID of the log |
| HEAD | begins a frame (`frames`) | the groups of the frame before |
| TAIL | ends a frame | the groups of this frame |
| ENTRY | an entry that is appended; it replaces entries of the same and of higher indexes | its data |
| BODY | an entry that was copied here, or that belongs to a snapshot that is being received | its data |
| CHUNK | part `index` of the state of the snapshot with the stamp `time` | bytes |
| HARD | term, and the vote | vote |
| STATE | everything about a group but bodies and the state of its snapshot (`groupstate`) | |
| REMOVED | the group is removed | |
"""

from __future__ import annotations

from struct import Struct
from typing import Final
from zlib import crc32

from mypy_extensions import i64

MAGIC: Final = b"\xd5RL\x01"
HEADER_BYTES: Final = 48
SEGMENT: Final = 1
HEAD: Final = 2
TAIL: Final = 3
ENTRY: Final = 4
BODY: Final = 5
CHUNK: Final = 6
HARD: Final = 7
STATE: Final = 8
REMOVED: Final = 9

SOUND: Final = 1
SHORT: Final = 0
"""The bytes end before the record does."""
UNSOUND: Final = -1

DATA_ID_BYTES: Final = 8
SEGMENT_BYTES: Final = 64
"""The size of the record SEGMENT."""
LARGEST_PAYLOAD: Final = 100 << 20
VERSION: Final = 1
_VERSION_TEXT: Final = b"\x01\x00\x00\x00\x00\x00\x00\x00"

_FIRST: Final = Struct("<4sI")
_REST: Final = Struct("<IBBHqqqq")
_HEADER: Final = Struct("<4sIIBBHqqqq")
_FILL: Final = (b"", b"\0", b"\0\0", b"\0\0\0", b"\0\0\0\0", b"\0\0\0\0\0", b"\0\0\0\0\0\0", b"\0\0\0\0\0\0\0")


def record_bytes(length: i64) -> i64:
    """The size of a record with a payload of this length."""
    return HEADER_BYTES + ((length + 7) & ~7)


def encode(seed: i64, kind: i64, sub: i64, group: i64, term: i64, index: i64, time_ms: i64, payload: bytes) -> bytes:
    """The bytes of a record."""
    length: i64 = len(payload)
    rest = _REST.pack(length, kind, sub, 0, group, term, index, time_ms)
    total = crc32(payload, crc32(rest, seed))
    return b"".join((_FIRST.pack(MAGIC, total), rest, payload, _FILL[-length & 7]))


def segment_seed(data_id: bytes, number: i64) -> i64:
    """The start value of the CRC-32 of the records in a segment."""
    return crc32(b"%b %d" % (data_id, number))


def segment_record(data_id: bytes, number: i64) -> bytes:
    """The first record of a segment."""
    return encode(0, SEGMENT, 0, 0, 0, number, 0, _VERSION_TEXT + data_id)


def data_id_of(start: bytes, number: i64) -> bytes:
    """The data ID in the first bytes of a segment; empty if they are damaged or of another version."""
    reader = RecordReader()
    reader.load(start[:SEGMENT_BYTES], 0)
    if reader.parse(0) != SOUND or reader.kind != SEGMENT or reader.index != number:
        return b""
    payload = reader.payload()
    return payload[len(_VERSION_TEXT) :] if payload.startswith(_VERSION_TEXT) else b""


class RecordReader:
    """Reads records; its fields are those of the last one that was sound."""

    def __init__(self) -> None:
        self.data: bytes = b""
        self._seed: i64 = 0
        self._start: i64 = 0
        """Where the payload begins in `data`."""
        self.length: i64 = 0
        self.size: i64 = 0
        """The size of the whole record; after SHORT, how many bytes must be there to judge it."""
        self.kind: i64 = 0
        self.sub: i64 = 0
        self.group: i64 = 0
        self.term: i64 = 0
        self.index: i64 = 0
        self.time_ms: i64 = 0

    def load(self, data: bytes, seed: i64) -> None:
        """Read from these bytes from now on."""
        self.data = data
        self._seed = seed

    def parse(self, at: i64) -> i64:
        """Read the record at this offset: SOUND, SHORT or UNSOUND."""
        left: i64 = len(self.data) - at
        if left < HEADER_BYTES:
            self.size = HEADER_BYTES
            return SHORT
        magic, total, length, kind, sub, spare, group, term, index, time_ms = _HEADER.unpack_from(self.data, at)
        if magic != MAGIC or length > LARGEST_PAYLOAD or spare != 0:
            return UNSOUND
        size: i64 = record_bytes(length)
        if size > left:
            self.size = size
            return SHORT
        start = at + HEADER_BYTES
        if crc32(self.data[at + 8 : start + i64(length)], self._seed) != total:
            return UNSOUND
        self._start = start
        self.length = length
        self.size = size
        self.kind = kind
        self.sub = sub
        self.group = group
        self.term = term
        self.index = index
        self.time_ms = time_ms
        return SOUND

    def payload(self) -> bytes:
        """The payload of the last record."""
        return self.data[self._start : self._start + self.length]
