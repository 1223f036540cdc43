"""The payloads of the bus messages of ordered queues; all numbers are big-endian.

RAFT: for each group the identities of the logs of sender and receiver (8, 8), the length (4) and the bytes of its
messages (`raft.codec`).

BEAT: the identity of the log of the sender (8), the identity of the catalog that it knows (16; zeros for none), the
version of the catalog (8), and whether it has a replica of group 0 (1).

CATALOG: the identity of the catalog (16), the length of the members of group 0 (2), these members, the catalog.

PROPOSE: for each request its number (8), the group (4), the kind (1), the length (4), the data.

PROPOSED: for each answer the number of the request (8), the status (1), the length (4), the data.

FOUND: a step in founding the catalog (1), a number that pairs questions and answers (8), the identity of the catalog
(16; zeros for none), the identity of the log of the sender (8), and the members of group 0 (as in CATALOG) in the step
that names them.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

LOG_BYTES: Final = 8
"""The size of the identity of a log."""
NO_LOG: Final = bytes(LOG_BYTES)
"""Instead of that of a node whose log is not open, or has failed."""
CATALOG_BYTES: Final = 16
"""The size of the identity of a catalog."""
NO_CATALOG: Final = bytes(CATALOG_BYTES)

_BEAT: Final = struct.Struct(">8s16sqB")
_CATALOG: Final = struct.Struct(">16sH")
_GROUP: Final = struct.Struct(">8s8sI")
_REQUEST: Final = struct.Struct(">QIBI")
_ANSWER: Final = struct.Struct(">QBI")
_FOUND: Final = struct.Struct(">BQ16s8sH")


class MalformedPayloadError(Exception):
    """The payload is not that of the message; the text says why."""


class Beat(NamedTuple):
    """What a node says about itself, several times a second."""

    log: bytes
    catalog: bytes
    version: int
    founder: bool


class Told(NamedTuple):
    """A whole catalog."""

    catalog: bytes
    members: bytes
    data: bytes


class Founding(NamedTuple):
    """A step in founding the catalog."""

    step: int
    number: int
    catalog: bytes
    log: bytes
    members: bytes


def pack_beat(beat: Beat) -> bytes:
    """The payload of a BEAT."""
    return _BEAT.pack(beat.log, beat.catalog, beat.version, beat.founder)


def unpack_beat(payload: bytes) -> Beat:
    """The content of a BEAT. Raises MalformedPayloadError."""
    if len(payload) != _BEAT.size:
        raise MalformedPayloadError(f"a BEAT of {len(payload)} bytes")
    log, catalog, version, founder = _BEAT.unpack(payload)
    return Beat(log, catalog, version, founder != 0)


def pack_catalog(told: Told) -> bytes:
    """The payload of a CATALOG."""
    return _CATALOG.pack(told.catalog, len(told.members)) + told.members + told.data


def unpack_catalog(payload: bytes) -> Told:
    """The content of a CATALOG. Raises MalformedPayloadError."""
    if len(payload) < _CATALOG.size:
        raise MalformedPayloadError(f"a CATALOG of {len(payload)} bytes")
    catalog, size = _CATALOG.unpack_from(payload)
    end = _CATALOG.size + size
    if len(payload) < end:
        raise MalformedPayloadError("a CATALOG that ends within its members")
    return Told(catalog, payload[_CATALOG.size : end], payload[end:])


def pack_messages(from_log: bytes, to_log: bytes, messages: bytes) -> bytes:
    """The part of a RAFT about one group."""
    return _GROUP.pack(from_log, to_log, len(messages)) + messages


def unpack_messages(payload: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """The logs of sender and receiver, and the messages of each group in a RAFT. Raises MalformedPayloadError."""
    found: list[tuple[bytes, bytes, bytes]] = []
    at = 0
    end = len(payload)
    while at < end:
        if end - at < _GROUP.size:
            raise MalformedPayloadError("a RAFT that ends within a group")
        from_log, to_log, size = _GROUP.unpack_from(payload, at)
        at += _GROUP.size
        if end - at < size:
            raise MalformedPayloadError("a RAFT that ends within a group")
        found.append((from_log, to_log, payload[at : at + size]))
        at += size
    return found


def pack_asked(number: int, group: int, kind: int, data: bytes) -> bytes:
    """One request in a PROPOSE."""
    return _REQUEST.pack(number, group, kind, len(data)) + data


def unpack_asked(payload: bytes) -> list[tuple[int, int, int, bytes]]:
    """Number, group, kind and data of the requests in a PROPOSE. Raises MalformedPayloadError."""
    found: list[tuple[int, int, int, bytes]] = []
    at = 0
    end = len(payload)
    while at < end:
        if end - at < _REQUEST.size:
            raise MalformedPayloadError("a PROPOSE that ends within a request")
        number, group, kind, size = _REQUEST.unpack_from(payload, at)
        at += _REQUEST.size
        if end - at < size:
            raise MalformedPayloadError("a PROPOSE that ends within a request")
        found.append((number, group, kind, payload[at : at + size]))
        at += size
    return found


def pack_answered(number: int, status: int, data: bytes) -> bytes:
    """One answer in a PROPOSED."""
    return _ANSWER.pack(number, status, len(data)) + data


def unpack_answered(payload: bytes) -> list[tuple[int, int, bytes]]:
    """Number, status and data of the answers in a PROPOSED. Raises MalformedPayloadError."""
    found: list[tuple[int, int, bytes]] = []
    at = 0
    end = len(payload)
    while at < end:
        if end - at < _ANSWER.size:
            raise MalformedPayloadError("a PROPOSED that ends within an answer")
        number, status, size = _ANSWER.unpack_from(payload, at)
        at += _ANSWER.size
        if end - at < size:
            raise MalformedPayloadError("a PROPOSED that ends within an answer")
        found.append((number, status, payload[at : at + size]))
        at += size
    return found


def pack_founding(founding: Founding) -> bytes:
    """The payload of a FOUND."""
    head = _FOUND.pack(founding.step, founding.number, founding.catalog, founding.log, len(founding.members))
    return head + founding.members


def unpack_founding(payload: bytes) -> Founding:
    """The content of a FOUND. Raises MalformedPayloadError."""
    if len(payload) < _FOUND.size:
        raise MalformedPayloadError(f"a FOUND of {len(payload)} bytes")
    step, number, catalog, log, size = _FOUND.unpack_from(payload)
    if len(payload) != _FOUND.size + size:
        raise MalformedPayloadError(f"members of {len(payload) - _FOUND.size} bytes, not {size}")
    return Founding(step, number, catalog, log, payload[_FOUND.size :])
