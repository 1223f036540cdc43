"""Encodes replies and requests. Frequent numbers (lengths, small integers) are encoded once, at import."""

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
    """Encode the header of a bulk string of `length` bytes."""
    if length < _CACHED:
        return _BULK_HEADERS[length]
    return b"$%d\r\n" % length


def bulk(value: bytes) -> bytes:
    """Encode a bulk string."""
    return bulk_header(len(value)) + value + CRLF


def array_header(length: int) -> bytes:
    """Encode the header of an array."""
    if length < _CACHED:
        return _ARRAY_HEADERS[length]
    return b"*%d\r\n" % length


def integer(value: int) -> bytes:
    """Encode an integer."""
    if 0 <= value < _CACHED:
        return _INTEGERS[value]
    return b":%d\r\n" % value


def status(text: bytes) -> bytes:
    """Encode a simple string; `text` must not contain a line end."""
    return b"+" + text + CRLF


def request(words: Sequence[bytes]) -> bytes:
    """Encode a request: an array of bulk strings."""
    return array_header(len(words)) + b"".join([bulk(word) for word in words])
