"""The common part of QSCAN and JSCAN: the cursor, a limit on the work of one call, and options in any order.

An iteration is a series of calls, each with the cursor that the previous call replied; the cursor 0 begins and ends it.
A call ends when it has found COUNT elements or examined ten times as many, so that filters with few matches take
bounded time. BUSYLOOP or a negative COUNT removes the limit. Elements that exist during the whole iteration are found.
"""

from __future__ import annotations

from typing import Final

from disqued.errors import CommandSyntaxError, ReplyError
from disqued.resp.integers import require_integer

_MAX_CURSOR: Final = (1 << 64) - 1
_LOOKS_PER_ELEMENT: Final = 10
_LARGEST_PAGE: Final = 1000


class Scan:
    """The options of one QSCAN or JSCAN; each adds its filters in `take`."""

    def __init__(self) -> None:
        self.cursor: int | None = None
        self.count = 100
        self.busy_loop = False

    def read(self, words: list[bytes]) -> None:
        """Parse the words after the command's name.

        A word that is not an option, or an option without its value, is parsed as the cursor.
        """
        at = 0
        while at < len(words):
            option = words[at].upper()
            if option == b"BUSYLOOP":
                self.busy_loop = True
            elif self.flag(option):
                pass
            elif at + 1 < len(words) and self.take(option, words[at + 1]):
                at += 1
            elif self.cursor is not None:
                raise CommandSyntaxError
            else:
                self.cursor = _cursor(words[at])
            at += 1

    def flag(self, option: bytes) -> bool:  # noqa: ARG002 - there are no more of them here
        """Set an option without a value; False if there is none with that name."""
        return False

    def take(self, option: bytes, value: bytes) -> bool:
        """Set an option; False if there is none with that name."""
        if option != b"COUNT":
            return False
        self.count = require_integer(value)
        return True

    @property
    def unbounded(self) -> bool:
        """Whether the call continues to the end."""
        return self.busy_loop or self.count < 0

    def page(self, found: int) -> int:
        """How many elements to examine next."""
        return _LARGEST_PAGE if self.unbounded else min(max(self.count - found, 1), _LARGEST_PAGE)

    def enough(self, found: int, looked_at: int) -> bool:
        """Whether the call ends here and leaves the rest to the next call."""
        return not self.unbounded and (found >= self.count or looked_at >= _LOOKS_PER_ELEMENT * self.count)


def _cursor(word: bytes) -> int:
    """Parse a word as C's `strtoul` does: signs are allowed, the empty word is 0, and -1 is the highest value."""
    digits = word[1:] if word[:1] in {b"+", b"-"} else word
    if (word and not digits.isdigit()) or len(digits) > 20 or int(digits or b"0") > _MAX_CURSOR:
        raise ReplyError("ERR invalid cursor or option name")
    value = int(digits or b"0")
    return -value & _MAX_CURSOR if word[:1] == b"-" else value
