"""Selects the queues of one member for the page: the longest ones, or the first by name, among those whose names match.

A node can have a hundred thousand queues. QSCAN scans them repeatedly, in small steps, and QSTAT is called only for
candidates. So the selection can be slightly out of date, but not the statistics of the selected queues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from disqued.config.glob import glob_match
from disqued.console.figures import bytes_of
from disqued.httproutes import MAX_NAME_BYTES, MAX_PATTERN_BYTES
from disqued.resp.replies import Reply

SCANNED: Final = 250
"""Number of queues per QSCAN,"""
MEASURED: Final = 50
"""and number of queues whose statistics are read at a time."""
MAX_SELECTED: Final = 100
MAX_STEPS: Final = MAX_PATTERN_BYTES * (MAX_NAME_BYTES + 16)
"""Maximum matching steps at a time, enough for one name; 16 are for parsing the pattern."""

_Rank: TypeAlias = "tuple[int, bytes]"
_SPECIAL: Final = frozenset(b"*?[\\")

SORTS: Final[dict[str, Callable[[bytes, int], _Rank]]] = {
    "length": lambda name, length: (-length, name),
    "name": lambda name, _length: (0, name),
}
"""Sort orders of queues."""


class QueueSelection:
    """The selected queues of one member."""

    def __init__(self, search: bytes, sort: str, most: int) -> None:
        """`search` is a glob pattern, or a word without special characters that matches anywhere in a name."""
        self._search = search
        self._is_pattern = bool(_SPECIAL.intersection(search))
        self.rank = SORTS[sort]
        self.most = most
        self._by_length = sort == "length"
        self._lengths: dict[bytes, int] = {}
        """Lengths of the selected queues."""
        self._cursor = b"0"
        self._untried: list[bytes] = []
        """Queues that have not been matched yet."""
        self._found: list[bytes] = []
        """Candidates for the selection."""
        self.complete = False
        """Whether all queues were scanned at least once."""
        self.round_ended = False
        """Whether the last QSCAN reached the end."""

    @property
    def lengths(self) -> dict[bytes, int]:
        """The lengths of the selected queues."""
        return self._lengths

    @property
    def names(self) -> list[bytes]:
        """The selected queues in order."""
        return sorted(self._lengths, key=lambda name: self.rank(name, self._lengths[name]))

    def forget(self) -> None:
        """Begin again, without any queues."""
        self._lengths.clear()
        self._untried, self._found = [], []
        self._cursor = b"0"
        self.complete = False

    def scan(self) -> list[bytes]:
        """Return the arguments of the next QSCAN."""
        least = min(self._lengths.values()) + 1 if self._by_length and self._full else 0
        return [self._cursor, b"COUNT", b"%d" % SCANNED, b"MINLEN", b"%d" % least]

    def scanned(self, reply: Reply) -> None:
        """Process the reply of QSCAN."""
        if not isinstance(reply, list) or len(reply) != 2 or not isinstance(reply[1], list):
            return
        self._cursor = bytes_of(reply[0])
        self.round_ended = self._cursor == b"0"
        names = [name for name in map(bytes_of, reply[1]) if len(name) <= MAX_NAME_BYTES and name not in self._lengths]
        if not self._by_length and self._full:
            last = max(self.rank(name, 0) for name in self._lengths)
            names = [name for name in names if self.rank(name, 0) < last]
        if self._is_pattern:
            self._untried = names
        else:
            self._found = [name for name in names if self._search in name]
        self._update_complete()

    def to_measure(self) -> list[bytes]:
        """Return candidates whose lengths are needed. If there are none, call `match_names`."""
        names, self._found = self._found[:MEASURED], self._found[MEASURED:]
        return names

    def match_names(self) -> bool:
        """Match the pattern with some of the scanned names; returns whether there were any."""
        if not self._untried:
            return False
        work = count = 0
        for name in self._untried:
            work += len(self._search) * (len(name) + 16)
            if count and work > MAX_STEPS:
                break
            count += 1
            if glob_match(self._search, name):
                self._found.append(name)
        del self._untried[:count]
        self._update_complete()
        return True

    def measured(self, lengths: Sequence[tuple[bytes, int | None]]) -> None:
        """Process the lengths of queues; None for queues that no longer exist."""
        for name, length in lengths:
            if length is None:
                self._lengths.pop(name, None)
            else:
                self._lengths[name] = length
        for name in self.names[self.most :]:
            del self._lengths[name]
        self._update_complete()

    @property
    def settled(self) -> bool:
        """Whether the results of the last QSCAN are processed."""
        return not self._untried and not self._found

    def _update_complete(self) -> None:
        self.complete = self.complete or (self.round_ended and self.settled)

    @property
    def _full(self) -> bool:
        return len(self._lengths) >= self.most
