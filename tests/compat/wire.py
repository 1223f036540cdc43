"""RESP2 replies as values, decoded strictly, for comparing what two servers sent.

Decoding keeps every distinction the bytes make (status or bulk, null bulk or null array), and refuses anything that
encoding the value again would not give back. So two replies are the same bytes exactly when they are equal values, and
a difference can be named by its place in the reply. RESP3 types are left to the client libraries under test.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Status:
    """A `+` line."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Failure:
    """A `-` line."""

    text: bytes


class Nil(enum.Enum):
    """The two nulls of RESP2."""

    BULK = b"$-1\r\n"
    ARRAY = b"*-1\r\n"


Reply: TypeAlias = "Status | Failure | int | bytes | Nil | list[Reply]"


class NotRespError(Exception):
    """Bytes that no RESP2 server may send."""


def decode(data: bytes, start: int = 0) -> tuple[Reply, int] | None:
    """One reply and where it ends, or None when more bytes are needed."""
    end = data.find(b"\r\n", start)
    if end < 0:
        return None
    kind, line, after = data[start : start + 1], data[start + 1 : end], end + 2
    if kind == b"+":
        return Status(line), after
    if kind == b"-":
        return Failure(line), after
    number = _integer(line)
    if kind == b":":
        return number, after
    if kind == b"$":
        return _bulk(data, after, number)
    if kind == b"*":
        return _array(data, after, number)
    raise NotRespError(f"reply type {kind!r} at offset {start}: {data[start : start + 60]!r}")


def decode_all(data: bytes) -> list[Reply]:
    """Every reply in `data`; raises NotRespError when the last one is cut off."""
    replies: list[Reply] = []
    at = 0
    while at < len(data):
        found = decode(data, at)
        if found is None:
            raise NotRespError(f"cut off after {len(data)} bytes: {data[at : at + 60]!r}")
        reply, at = found
        replies.append(reply)
    return replies


def encode(reply: Reply) -> bytes:
    """The bytes that stand for `reply`."""
    if isinstance(reply, Status):
        return b"+%b\r\n" % reply.text
    if isinstance(reply, Failure):
        return b"-%b\r\n" % reply.text
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    if isinstance(reply, bytes):
        return b"$%d\r\n%b\r\n" % (len(reply), reply)
    if isinstance(reply, Nil):
        return bytes(reply.value)
    return b"*%d\r\n%b" % (len(reply), b"".join(map(encode, reply)))


def request(*words: bytes) -> bytes:
    """A multi bulk request."""
    return encode(list(words))


def _integer(line: bytes) -> int:
    """A canonical decimal, the only form a reply may hold."""
    try:
        number = int(line)
    except ValueError:
        raise NotRespError(f"not a number: {line!r}") from None
    if b"%d" % number != line:
        raise NotRespError(f"not the canonical form of a number: {line!r}")
    return number


def _bulk(data: bytes, start: int, length: int) -> tuple[Reply, int] | None:
    if length == -1:
        return Nil.BULK, start
    if len(data) < start + length + 2:
        return None
    if data[start + length : start + length + 2] != b"\r\n":
        raise NotRespError(f"bulk of {length} bytes without its line end: {data[start : start + 60]!r}")
    return data[start : start + length], start + length + 2


def _array(data: bytes, start: int, length: int) -> tuple[Reply, int] | None:
    if length == -1:
        return Nil.ARRAY, start
    elements: list[Reply] = []
    at = start
    for _ in range(length):
        found = decode(data, at)
        if found is None:
            return None
        element, at = found
        elements.append(element)
    return elements, at
