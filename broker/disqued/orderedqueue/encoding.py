"""Compact binary encoding of commands and snapshots.

A number is written in groups of seven bits, the lowest first, with the highest bit set in all bytes but the last.
Numbers are 0 to 2^63-1. Bytes are written as their length and themselves. The encoding of a value is unique, so equal
states have equal bytes.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

_LAST_SHIFT: Final = 56
"""The shift of the ninth group, the last one that fits 63 bits."""


MOST_SECONDS: Final = 1 << 32
"""No time in a command is longer, so that sums of times have 63 bits."""
MOST_TIME_MS: Final = MOST_SECONDS * 1000


class Malformed(ValueError):
    """The bytes are no valid encoding; the text says why."""


class Writer:
    """Encodes values one after the other."""

    def __init__(self) -> None:
        self._out = bytearray()

    def number(self, value: i64) -> None:
        """Append a number that is not negative."""
        assert value >= 0
        out = self._out
        while value > 127:
            out.append(int(value & 127) | 128)
            value >>= 7
        out.append(int(value))

    def flag(self, value: bool) -> None:
        """Append a truth value."""
        self._out.append(1 if value else 0)

    def text(self, value: bytes) -> None:
        """Append bytes with their length."""
        self.number(len(value))
        self._out += value

    def raw(self, value: bytes) -> None:
        """Append bytes without their length: the tail of the encoding."""
        self._out += value

    def done(self) -> bytes:
        """All that was appended."""
        return bytes(self._out)


class Reader:
    """Decodes values one after the other. Its methods raise Malformed."""

    def __init__(self, data: bytes, at: i64 = 0) -> None:
        self._data = data
        self._end: i64 = len(data)
        self.at: i64 = at
        """Where the next value begins."""

    def number(self) -> i64:
        """The next number."""
        data = self._data
        at = self.at
        value: i64 = 0
        shift: i64 = 0
        while at < self._end:
            byte: i64 = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                if byte == 0 and shift > 0:
                    raise Malformed("a number has leading zeros")
                self.at = at
                return value
            if shift == _LAST_SHIFT:
                raise Malformed("a number has more than 63 bits")
            shift += 7
        raise Malformed("the data ends within a number")

    def flag(self) -> bool:
        """The next truth value."""
        value = self.number()
        if value > 1:
            raise Malformed("a flag is neither 0 nor 1")
        return value == 1

    def text(self) -> bytes:
        """The next bytes with a length."""
        size = self.number()
        start = self.at
        if size > self._end - start:
            raise Malformed("the data ends within bytes")
        self.at = start + size
        return self._data[start : start + size]

    def count(self) -> i64:
        """The number of values that follow, each of at least one byte."""
        value = self.number()
        if value > self._end - self.at:
            raise Malformed("the data has fewer values than it says")
        return value

    @property
    def left(self) -> i64:
        """How many bytes follow."""
        return self._end - self.at

    def finish(self) -> None:
        """Check that nothing follows."""
        if self.at != self._end:
            raise Malformed(f"{self._end - self.at} bytes follow the last value")


def read_seconds(data: Reader) -> i64:
    """The next number, a time in seconds. Raises Malformed."""
    value = data.number()
    if value > MOST_SECONDS:
        raise Malformed("a time is too long")
    return value


def read_time_ms(data: Reader) -> i64:
    """The next number, a time in milliseconds. Raises Malformed."""
    value = data.number()
    if value > MOST_TIME_MS:
        raise Malformed("a time is too long")
    return value
