r"""Glob patterns of Redis: `*`, `?`, `[abc]`, `[a-z]`, `[^a]` and `\` to escape a character.

Matching backtracks to the last `*` only, so the cost is at most the product of the two lengths. What the last `*`
matches is not looked at: names that clients send can have megabytes. The standard library's `fnmatch` is not
used because it writes negation as `!` and has no escapes.
"""

from __future__ import annotations

import sys
from typing import Final

_ANY: Final = frozenset(range(256))
_STAR: Final = None
_OBJECT_BYTES: Final = 250
"""The memory of a pattern without its parts, measured."""
_ONE: Final = tuple(frozenset((byte,)) for byte in range(256))
"""The sets with one byte, which all patterns share: a set takes 200 bytes."""

_Token = frozenset[int] | None
"""The bytes that match at one position; `_STAR` matches any sequence of bytes."""


def glob_match(pattern: bytes, name: bytes) -> bool:
    """Whether the pattern matches the whole name."""
    return Glob(pattern).matches(name)


class Glob:
    """A pattern that is matched with many names."""

    def __init__(self, pattern: bytes) -> None:
        self._tokens = _tokens(pattern)
        stars = [at for at, token in enumerate(self._tokens) if token is _STAR]
        self._last_star = stars[-1] if stars else -1
        self._literal = _longest_literal(self._tokens)

    @property
    def used_bytes(self) -> int:
        """The memory that the pattern takes; what patterns share does not count."""
        own = [token for token in self._tokens if token is not _STAR and 1 < len(token) < len(_ANY)]
        return _OBJECT_BYTES + len(self._literal) + 9 * len(self._tokens) + sum(map(sys.getsizeof, own))

    def matches(self, name: bytes) -> bool:
        """Whether the pattern matches the whole name."""
        return self._literal in name and _match(self._tokens, self._last_star, name)


def _match(tokens: list[_Token], last_star: int, name: bytes) -> bool:
    at = position = 0
    star, star_position = -1, 0
    while position < len(name):
        token = tokens[at] if at < len(tokens) else frozenset[int]()
        if at == last_star:
            at += 1
            rest = len(tokens) - at
            if rest > len(name) - position:
                return False
            star, position = -1, len(name) - rest
        elif token is _STAR:
            star, star_position = at, position
            at += 1
        elif name[position] in token:
            at += 1
            position += 1
        elif star >= 0:
            star_position += 1
            at, position = star + 1, star_position
        else:
            return False
    return all(token is _STAR for token in tokens[at:])


def _tokens(pattern: bytes) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(pattern):
        byte = pattern[at : at + 1]
        at += 1
        if byte == b"*":
            tokens.append(_STAR)
        elif byte == b"?":
            tokens.append(_ANY)
        elif byte == b"[":
            token, at = _class(pattern, at)
            tokens.append(token)
        else:
            if byte == b"\\" and at < len(pattern):
                byte = pattern[at : at + 1]
                at += 1
            tokens.append(_ONE[byte[0]])
    return tokens


def _longest_literal(tokens: list[_Token]) -> bytes:
    """The longest sequence of bytes that every matching name has. Most names of others do not have it."""
    longest = found = b""
    for token in tokens:
        if token is not _STAR and len(token) == 1:
            found += bytes(token)
            if len(found) > len(longest):
                longest = found
        else:
            found = b""
    return longest


def _class(pattern: bytes, at: int) -> tuple[frozenset[int], int]:
    """The bytes of the class that begins at `at`, after its bracket, and the position after the class."""
    negated = pattern[at : at + 1] == b"^"
    at += negated
    members: set[int] = set()
    while at < len(pattern) and pattern[at] != ord("]"):
        if pattern[at] == ord("\\") and at + 1 < len(pattern):
            members.add(pattern[at + 1])
            at += 2
        elif pattern[at + 1 : at + 2] == b"-" and at + 2 < len(pattern):
            first, last = sorted((pattern[at], pattern[at + 2]))
            members.update(range(first, last + 1))
            at += 3
        else:
            members.add(pattern[at])
            at += 1
    return _ANY - members if negated else frozenset(members), at + 1
