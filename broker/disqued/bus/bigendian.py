"""Unsigned integers of the bus, most significant byte first."""

from __future__ import annotations

from mypy_extensions import i64


def read_u16(data: bytes, at: i64) -> i64:
    """The two bytes at `at`."""
    high: i64 = data[at]
    low: i64 = data[at + 1]
    return high << 8 | low


def read_u32(data: bytes, at: i64) -> i64:
    """The four bytes at `at`."""
    return read_u16(data, at) << 16 | read_u16(data, at + 2)


def u16(value: i64) -> bytes:
    """Two bytes; the value must fit."""
    return bytes((int(value >> 8), int(value & 255)))


def u32(value: i64) -> bytes:
    """Four bytes; the value must fit."""
    return int(value).to_bytes(4, "big")
