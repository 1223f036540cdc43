"""The slow log: the latest commands that took longer than `slowlog-log-slower-than` microseconds."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from disqued.resp.words import shorten

MAX_ARGUMENTS: Final = 32
MAX_ARGUMENT_BYTES: Final = 128


@dataclass(frozen=True)
class SlowCommand:
    """One entry; its arguments are truncated."""

    number: int
    at_s: int
    spent_us: int
    arguments: tuple[bytes, ...]


class SlowLog:
    """The entries of one node, newest first."""

    def __init__(self) -> None:
        self._next = 0
        self.entries: deque[SlowCommand] = deque()

    def add(self, arguments: list[bytes], at_s: int, spent_us: int, max_length: int) -> None:
        """Add a command, and remove the oldest entries beyond `max_length`."""
        kept = shorten(arguments, MAX_ARGUMENTS, MAX_ARGUMENT_BYTES)
        self.entries.appendleft(SlowCommand(self._next, at_s, spent_us, tuple(kept)))
        self._next += 1
        while len(self.entries) > max_length:
            self.entries.pop()
