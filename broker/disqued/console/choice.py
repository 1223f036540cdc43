"""Which queues the page shows: the longest ones, or the first by name, of those whose names match.

A node may have a hundred thousand queues. They are looked through a few at a time, round and round, with QSCAN; only
those that may come to be shown are asked for their figures. So the choice is a little behind, its figures are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from disqued.config.glob import glob_match
from disqued.console.figures import bytes_of
from disqued.console.wholereplies import Reply

SCANNED: Final = 250
"""Queues that one QSCAN looks for,"""
MEASURED: Final = 50
"""and queues that are asked for their figures at a time."""
MOST_CHOSEN: Final = 100

_Rank: TypeAlias = "tuple[int, bytes]"
_SPECIAL: Final = frozenset(b"*?[\\")

SORTS: Final[dict[str, Callable[[bytes, int], _Rank]]] = {
    "length": lambda name, length: (-length, name),
    "name": lambda name, _length: (0, name),
}
"""What queues are ordered by."""


def pattern_of(sought: bytes) -> bytes:
    """A glob pattern; a word without special characters is looked for anywhere in the names."""
    return sought if _SPECIAL.intersection(sought) else b"*" + sought + b"*"


class Choice:
    """The queues that one page shows."""

    def __init__(self, sought: bytes, sort: str, most: int) -> None:
        self._pattern = pattern_of(sought)
        self._rank = SORTS[sort]
        self._by_length = sort == "length"
        self._most = most
        self._lengths: dict[bytes, int] = {}
        """Of the queues that are chosen."""
        self._cursor = b"0"
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
        names = [name for name in map(bytes_of, reply[1]) if name not in self._lengths]
        self._found = [name for name in names if glob_match(self._pattern, name)]
        if not self._by_length:
            self._found = [name for name in self._found if self._gets_in(name, 0)]
        self.complete = self.complete or (self.round_ended and not self._found)

    def to_measure(self) -> list[bytes]:
        """Names whose lengths are wanted now."""
        names, self._found = self._found[:MEASURED], self._found[MEASURED:]
        return names

    def measured(self, lengths: Sequence[tuple[bytes, int | None]]) -> None:
        """Take the lengths of queues; None of those that are gone."""
        for name, length in lengths:
            if length is None:
                self._lengths.pop(name, None)
            elif name in self._lengths or self._gets_in(name, length):
                self._lengths[name] = length
        for name in self.names[self._most :]:
            del self._lengths[name]
        self.complete = self.complete or (self.round_ended and not self._found)

    @property
    def _full(self) -> bool:
        return len(self._lengths) >= self._most

    def _gets_in(self, name: bytes, length: int) -> bool:
        """Whether there is room for a queue, or it comes before one that is chosen."""
        if not self._full:
            return True
        return self._rank(name, length) < max(self._rank(*chosen) for chosen in self._lengths.items())
