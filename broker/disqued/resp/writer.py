"""Encodes replies, and requests. Frequent numbers (lengths, small integers) are encoded once, at import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

CRLF: Final = b"\r\n"
OK: Final = b"+OK\r\n"
NULL_BULK: Final = b"$-1\r\n"
NULL_ARRAY: Final = b"*-1\r\n"
NULL_RESP3: Final = b"_\r\n"

_CACHED: Final = 1024
_BULK_HEADERS: Final[list[bytes]] = [b"$%d\r\n" % n for n in range(_CACHED)]
_ARRAY_HEADERS: Final[list[bytes]] = [b"*%d\r\n" % n for n in range(_CACHED)]
_INTEGERS: Final[list[bytes]] = [b":%d\r\n" % n for n in range(_CACHED)]


def bulk_header(length: int) -> bytes:
    """What stands before a bulk of `length` bytes."""
    if length < _CACHED:
        return _BULK_HEADERS[length]
    return b"$%d\r\n" % length


def bulk(value: bytes) -> bytes:
    """A bulk string."""
    return bulk_header(len(value)) + value + CRLF


def array_header(length: int) -> bytes:
    """What stands before the elements of an array."""
    if length < _CACHED:
        return _ARRAY_HEADERS[length]
    return b"*%d\r\n" % length


def integer(value: int) -> bytes:
    """An integer reply."""
    if 0 <= value < _CACHED:
        return _INTEGERS[value]
    return b":%d\r\n" % value


def status(text: bytes) -> bytes:
    """A status line; `text` holds no line end."""
    return b"+" + text + CRLF


def request(words: Sequence[bytes]) -> bytes:
    """A request, as clients send it: an array of bulk strings."""
    return array_header(len(words)) + b"".join([bulk(word) for word in words])
