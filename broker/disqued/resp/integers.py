"""Parses integers in command arguments, like C's `strtoll` in base 10 applied to the whole word.

So `+5` is valid and the empty word is 0. A leading blank or a value outside 64 bits is refused.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.errors import NotAnInteger, ReplyError

_LIMIT: Final = 1 << 63
_LONGEST_FAST: Final = 18
"""Number of digits that always fit into 63 bits."""


def parse_integer(word: bytes) -> int | None:
    """Return the value of `word`, or None if it is not a 64-bit integer."""
    length: i64 = len(word)
    if length == 0 or length > _LONGEST_FAST:
        return _parse_unusual(word)
    value: i64 = 0
    index: i64 = 0
    while index < length:
        digit: i64 = word[index]
        if digit < 48 or digit > 57:
            return _parse_unusual(word)
        value = value * 10 + digit - 48
        index += 1
    return int(value)


def _parse_unusual(word: bytes) -> int | None:
    """Parse signs, empty words, and numbers that are long enough to overflow."""
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
    """Return the value of `word`. Raises `NotAnInteger`."""
    value = parse_integer(word)
    if value is None:
        raise NotAnInteger
    return value


def require_timeout_ms(word: bytes) -> int:
    """Return a timeout in milliseconds, 0 for none. Raises ReplyError if it is not an integer or negative."""
    value = parse_integer(word)
    if value is None:
        raise ReplyError("ERR timeout is not an integer or out of range")
    if value < 0:
        raise ReplyError("ERR timeout is negative")
    return value
