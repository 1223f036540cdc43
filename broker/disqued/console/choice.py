"""Which queues the page shows: the longest ones, or the first by name, of those whose names match.

A node may have a hundred thousand queues. They are looked through a few at a time, round and round, with QSCAN; only
those that may come to be shown are asked for their figures. So the choice is a little behind, its figures are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from disqued.config.glob import glob_match
from disqued.console.figures import bytes_of
from disqued.httproutes import MAX_NAME_BYTES, MAX_PATTERN_BYTES
from disqued.resp.replies import Reply

SCANNED: Final = 250
"""Queues that one QSCAN looks for,"""
MEASURED: Final = 50
"""and queues that are asked for their figures at a time."""
MOST_CHOSEN: Final = 100
MOST_WORK: Final = MAX_PATTERN_BYTES * (MAX_NAME_BYTES + 16)
"""Steps of patterns that are taken at a time: the most that one name takes, the 16 are for reading the pattern."""

_Rank: TypeAlias = "tuple[int, bytes]"
_SPECIAL: Final = frozenset(b"*?[\\")

SORTS: Final[dict[str, Callable[[bytes, int], _Rank]]] = {
    "length": lambda name, length: (-length, name),
    "name": lambda name, _length: (0, name),
}
"""What queues are ordered by."""


class Choice:
    """The queues that one page shows."""

    def __init__(self, sought: bytes, sort: str, most: int) -> None:
        """`sought` is a glob pattern, or a word without special characters, that may stand anywhere in the names."""
        self._sought = sought
        self._is_pattern = bool(_SPECIAL.intersection(sought))
        self._rank = SORTS[sort]
        self._by_length = sort == "length"
        self._most = most
        self._lengths: dict[bytes, int] = {}
        """Of the queues that are chosen."""
        self._cursor = b"0"
        self._untried: list[bytes] = []
        """Queues that the pattern is still to be tried on."""
        self._found: list[bytes] = []
        """Queues that may come to be chosen."""
        self.complete = False
        """All queues were looked at, once at least."""
        self.round_ended = False
        """The last scan came to the end."""

    @property
    def names(self) -> list[bytes]:
        """The chosen queues in order."""
        return sorted(self._lengths, key=lambda name: self._rank(name, self._lengths[name]))

    def scan(self) -> list[bytes]:
        """The command that finds more names, without that of the command."""
        least = min(self._lengths.values()) + 1 if self._by_length and self._full else 0
        return [self._cursor, b"COUNT", b"%d" % SCANNED, b"MINLEN", b"%d" % least]

    def scanned(self, reply: Reply) -> None:
        """Take what was found."""
        if not isinstance(reply, list) or len(reply) != 2 or not isinstance(reply[1], list):
            return
        self._cursor = bytes_of(reply[0])
        self.round_ended = self._cursor == b"0"
        names = [name for name in map(bytes_of, reply[1]) if len(name) <= MAX_NAME_BYTES and name not in self._lengths]
        if not self._by_length and self._full:
            last = max(self._rank(name, 0) for name in self._lengths)
            names = [name for name in names if self._rank(name, 0) < last]
        if self._is_pattern:
            self._untried = names
        else:
            self._found = [name for name in names if self._sought in name]
        self._see_whether_complete()

    def to_measure(self) -> list[bytes]:
        """Names whose lengths are wanted now; for none, there may still be some to `sift`."""
        names, self._found = self._found[:MEASURED], self._found[MEASURED:]
        return names

    def sift(self) -> bool:
        """Try the pattern on a few of the names that were found; whether there were any."""
        if not self._untried:
            return False
        work = count = 0
        for name in self._untried:
            work += len(self._sought) * (len(name) + 16)
            if count and work > MOST_WORK:
                break
            count += 1
            if glob_match(self._sought, name):
                self._found.append(name)
        del self._untried[:count]
        self._see_whether_complete()
        return True

    def measured(self, lengths: Sequence[tuple[bytes, int | None]]) -> None:
        """Take the lengths of queues; None of those that are gone."""
        for name, length in lengths:
            if length is None:
                self._lengths.pop(name, None)
            else:
                self._lengths[name] = length
        for name in self.names[self._most :]:
            del self._lengths[name]
        self._see_whether_complete()

    @property
    def settled(self) -> bool:
        """Nothing is left to be done about what the last scan found."""
        return not self._untried and not self._found

    def _see_whether_complete(self) -> None:
        self.complete = self.complete or (self.round_ended and self.settled)

    @property
    def _full(self) -> bool:
        return len(self._lengths) >= self._most
