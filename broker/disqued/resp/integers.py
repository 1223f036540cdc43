"""Integers in command arguments: what C's `strtoll` in base 10 takes, if it takes all of the word.

So `+5` is valid, the empty word is 0, and a leading blank or a value beyond 64 bits is refused.
"""

from __future__ import annotations

from typing import Final

from disqued.errors import NotAnInteger, ReplyError

_LIMIT: Final = 1 << 63
_LONGEST_FAST: Final = 18
"""Digits that fit 63 bits whatever they are."""


def parse_integer(word: bytes) -> int | None:
    """The value of `word`, or None when it is no integer of 64 bits."""
    length = len(word)
    if 0 < length <= _LONGEST_FAST:
        value = 0
        for i in range(length):
            digit = word[i] - 48
            if digit < 0 or digit > 9:
                break
            value = value * 10 + digit
        else:
            return value
    return _parse_unusual(word)


def _parse_unusual(word: bytes) -> int | None:
    """Signs, empty words, and numbers long enough to overflow."""
    digits = word[1:] if word[:1] in {b"+", b"-"} else word
    if not word:
        return 0
    if not digits.isdigit() or len(digits) > 4096:
        return None
    value = int(digits)
    if word[:1] == b"-":
        value = -value
    return value if -_LIMIT <= value < _LIMIT else None


def require_integer(word: bytes) -> int:
    """The value of `word`; raises `NotAnInteger`."""
    value = parse_integer(word)
    if value is None:
        raise NotAnInteger
    return value


def require_timeout_ms(word: bytes) -> int:
    """A timeout in milliseconds, 0 for none; raises the two errors for timeouts."""
    value = parse_integer(word)
    if value is None:
        raise ReplyError("ERR timeout is not an integer or out of range")
    if value < 0:
        raise ReplyError("ERR timeout is negative")
    return value
