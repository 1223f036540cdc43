"""Entries of the log of a group.

An entry is identified by its index and its term. Two logs that have an entry of the same index and term are equal up
to that entry. The time is the clock of the leader that made the entry, never less than that of the entry before it;
the machine knows no other time.

There may be hundreds of thousands of entries in memory, so this is a plain class. An entry never changes.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

NORMAL: Final = 0
"""A command of the machine."""
EMPTY: Final = 1
"""The first entry of a leader. It commits the entries of earlier terms."""
MEMBERS: Final = 2
"""New members of the group. The data is `Members.encode()`."""


class Entry:
    """One entry: term, index (from 1), time in milliseconds, kind and data."""

    def __init__(self, term: i64, index: i64, time_ms: i64, kind: i64, data: bytes) -> None:
        self.term: i64 = term
        self.index: i64 = index
        self.time_ms: i64 = time_ms
        self.kind: i64 = kind
        self.data: bytes = data

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Entry)
            and self.term == other.term
            and self.index == other.index
            and self.time_ms == other.time_ms
            and self.kind == other.kind
            and self.data == other.data
        )

    def __repr__(self) -> str:
        return f"Entry({self.term}, {self.index}, {self.time_ms}, {self.kind}, {self.data!r})"
