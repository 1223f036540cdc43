"""Reads what a connection writes, which is always whole replies, without copying what is long.

A body of a job may have many megabytes. Of each string only the beginning is taken, with how long it is; the rest stays
where it is, in the parts that the node wrote.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

_CRLF_BYTES: Final = 2


@dataclass(frozen=True)
class Failure:
    """An error reply, without its leading dash."""

    text: str


@dataclass(frozen=True)
class Beginning:
    """Of a string that is longer than was asked for."""

    data: bytes
    size_bytes: int
    """Of the whole."""


Reply: TypeAlias = "bytes | Beginning | int | list[Reply] | Failure | None"


def read_replies(parts: Iterable[bytes | bytearray | memoryview], most_bytes: int) -> list[Reply]:
    """The replies (RESP version 2) in what was written; raises ValueError when the last one is not whole."""
    rope = _Rope(parts)
    replies: list[Reply] = []
    while rope.more():
        replies.append(_read(rope, most_bytes))
    return replies


class _Rope:
    """Parts, read from the beginning."""

    def __init__(self, parts: Iterable[bytes | bytearray | memoryview]) -> None:
        self._parts = iter(parts)
        self._part = b""
        self._at = 0

    def more(self) -> bool:
        """Whether there is anything left; goes on to the part where it stands."""
        while self._at >= len(self._part):
            following = next(self._parts, None)
            if following is None:
                return False
            self._part, self._at = bytes(following), 0
        return True

    def line(self) -> bytes:
        """Up to the end of a line, which is left out."""
        line = b""
        while not line.endswith(b"\r\n"):
            self._require()
            end = self._part.find(b"\n", self._at) + 1 or len(self._part)
            line += self._part[self._at : end]
            self._at = end
        return line[:-_CRLF_BYTES]

    def take(self, size: int, most: int) -> bytes:
        """The first `most` of so many bytes; the others are passed over."""
        taken = b""
        while size > 0:
            self._require()
            here = min(len(self._part) - self._at, size)
            wanted = min(here, most - len(taken))
            taken += self._part[self._at : self._at + wanted]
            self._at += here
            size -= here
        return taken

    def _require(self) -> None:
        if not self.more():
            raise ValueError("a reply is not whole")


def _read(rope: _Rope, most_bytes: int) -> Reply:
    """One reply."""
    line = rope.line()
    kind, text = line[:1], line[1:]
    if kind == b"+":
        return text
    if kind == b"-":
        return Failure(text.decode("utf-8", "backslashreplace"))
    if kind == b":":
        return int(text)
    size = int(text)
    if size < 0:
        return None
    if kind == b"*":
        return [_read(rope, most_bytes) for _ in range(size)]
    if kind != b"$":
        raise ValueError(f"there are no replies that begin with {kind!r}")
    data = rope.take(size, most_bytes)
    rope.take(_CRLF_BYTES, 0)
    return data if len(data) == size else Beginning(data, size)
