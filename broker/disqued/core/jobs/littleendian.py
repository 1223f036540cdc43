"""Unsigned integers of serialised jobs and their attributes, least significant byte first."""

from __future__ import annotations

from mypy_extensions import i64


def read_u16(data: bytes, at: i64) -> i64:
    """The two bytes at `at`."""
    low: i64 = data[at]
    high: i64 = data[at + 1]
    return high << 8 | low


def read_u32(data: bytes, at: i64) -> i64:
    """The four bytes at `at`."""
    return read_u16(data, at + 2) << 16 | read_u16(data, at)
