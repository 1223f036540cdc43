"""The payload of RAFTSNAP: the parts of a snapshot, and requests for them.

For each part: the group (4 bytes), the number of the transfer (8), what it is (1), a position (8), the next position
(8), the length of the data (4), the data. The receiver asks for one part after the other (ASK, without data), so a lost
part is asked for again, and a slow receiver is not flooded.

- OFFER: the SNAPSHOT message of the core (`raft.codec`), behind the identities of the logs as in RAFT.
- STATE: a part of the state of the machine; the position is its offset, the next position the size of the state if
  this is the last part, otherwise where the next one begins.
- ENTRIES: entries whose bodies are still needed, and the next position; positions count the entries.
- END: there are no more parts.
- GONE: the sender does not know the transfer any more.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from disqued.ordered.payload import MalformedPayloadError
from disqued.raft.entry import Entry

OFFER: Final = 0
ASK: Final = 1
STATE: Final = 2
ENTRIES: Final = 3
END: Final = 4
GONE: Final = 5

_PART: Final = struct.Struct(">IQBQQI")
_ENTRY: Final = struct.Struct(">qqqBI")


class Part(NamedTuple):
    """One part of a RAFTSNAP."""

    group: int
    number: int
    what: int
    position: int
    following: int
    data: bytes


def pack_part(part: Part) -> bytes:
    """One part."""
    head = _PART.pack(part.group, part.number, part.what, part.position, part.following, len(part.data))
    return head + part.data


def unpack_parts(payload: bytes) -> list[Part]:
    """The parts of a RAFTSNAP. Raises MalformedPayloadError."""
    found: list[Part] = []
    at = 0
    end = len(payload)
    while at < end:
        if end - at < _PART.size:
            raise MalformedPayloadError("a RAFTSNAP that ends within a part")
        group, number, what, position, following, size = _PART.unpack_from(payload, at)
        at += _PART.size
        if end - at < size:
            raise MalformedPayloadError("a RAFTSNAP that ends within a part")
        found.append(Part(group, number, what, position, following, payload[at : at + size]))
        at += size
    return found


def pack_entries(entries: list[Entry]) -> bytes:
    """The data of ENTRIES."""
    parts: list[bytes] = []
    for entry in entries:
        parts.append(_ENTRY.pack(entry.term, entry.index, entry.time_ms, entry.kind, len(entry.data)))
        parts.append(entry.data)
    return b"".join(parts)


def unpack_entries(data: bytes) -> list[Entry]:
    """The entries in ENTRIES. Raises MalformedPayloadError."""
    found: list[Entry] = []
    at = 0
    end = len(data)
    while at < end:
        if end - at < _ENTRY.size:
            raise MalformedPayloadError("entries that end within one")
        term, index, time_ms, kind, size = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        if end - at < size:
            raise MalformedPayloadError("entries that end within one")
        found.append(Entry(term, index, time_ms, kind, data[at : at + size]))
        at += size
    return found
