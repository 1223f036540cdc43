"""Numbers of variable length in payloads: 7 bits per byte, lowest first, the top bit says that another byte follows."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

_LAST_SHIFT: Final = 56


def put(out: bytearray, value: i64) -> None:
    """Append a number from 0 to 2^63 - 1."""
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def put_blob(out: bytearray, value: bytes) -> None:
    """Append bytes behind their length."""
    put(out, len(value))
    out += value


class VarReader:
    """Reads what `put` and `put_blob` wrote. Raises ValueError if the data ends early or a number is too large."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at: i64 = 0

    @property
    def ended(self) -> bool:
        """Whether everything was read."""
        return self._at == len(self._data)

    def take(self) -> i64:
        """The next number."""
        value: i64 = 0
        shift: i64 = 0
        data = self._data
        while True:
            if self._at >= len(data) or shift > _LAST_SHIFT:
                raise ValueError("a number in a record is incomplete or too large")
            byte: i64 = data[self._at]
            self._at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def blob(self) -> bytes:
        """The next bytes."""
        length = self.take()
        if length > len(self._data) - self._at:
            raise ValueError("bytes in a record are incomplete")
        start = self._at
        self._at += length
        return self._data[start : self._at]


def groups_payload(groups: list[int]) -> bytes:
    """The payload of HEAD and TAIL: ascending group numbers as differences."""
    out = bytearray()
    before: i64 = 0
    for group in groups:
        put(out, group - before)
        before = group
    return bytes(out)


def groups_of(payload: bytes) -> list[int]:
    """The group numbers in such a payload. Raises ValueError if it is malformed."""
    reader = VarReader(payload)
    groups: list[int] = []
    group: i64 = 0
    while not reader.ended:
        group += reader.take()
        groups.append(group)
    return groups
