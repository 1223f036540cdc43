"""Recordings of the original server as values: requests, replies and times."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compat.wire import Reply, decode_all, request

if TYPE_CHECKING:
    from collections.abc import Iterable

VECTORS = Path(__file__).parent.parent / "vectors"
FILES = tuple(sorted(path.name for path in (VECTORS / "commands").iterdir()))

_ESCAPE = re.compile(r"\\(\\|r|n|t|x[0-9a-f]{2})")
_SHORTENED = re.compile(r"(.*)<\.\.\.(\d+) bytes in total\.\.\.>", re.DOTALL)
_CONTROL = {"\\": "\\", "r": "\r", "n": "\n", "t": "\t"}


def unescape(text: str) -> bytes:
    r"""The bytes that a text with `\\ \r \n \t \xHH` stands for; a very long one may end in a note of its size."""

    def byte(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if code[0] == "x" else _CONTROL[code]

    if shortened := _SHORTENED.fullmatch(text):
        head, size = unescape(shortened[1]), int(shortened[2])
        return head + head[-1:] * (size - len(head))
    return _ESCAPE.sub(byte, text).encode("latin-1")


def escape(data: bytes) -> str:
    r"""Bytes as printable text; the inverse of `unescape`."""
    named = {0x5C: "\\\\", 0x0D: "\\r", 0x0A: "\\n", 0x09: "\\t"}
    return "".join(named.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}") for byte in data)


@dataclass(frozen=True, slots=True)
class Step:
    """One exchange with the original server."""

    file: str
    number: int
    node: str
    """The node that was asked."""
    words: tuple[bytes, ...]
    """The request; for raw ones the raw bytes alone."""
    payload: bytes
    """The bytes of the request; empty where the server sent something without one."""
    answer: bytes
    """The exact reply bytes."""
    closed: bool
    asked_at_ms: int
    answered_at_ms: int
    note: str

    @property
    def name(self) -> str:
        """File and number as the tables of this project cite them: `01:29`."""
        return f"{self.file[:2]}:{self.number}"

    @property
    def is_raw(self) -> bool:
        """Whether the request was recorded as bytes and not as words."""
        return self.words == (self.payload,)

    def replies(self) -> list[Reply]:
        """The reply bytes decoded."""
        return decode_all(self.answer)


def numbers(ranges: Iterable[tuple[int, int]]) -> Iterable[int]:
    """The numbers of inclusive ranges, in order."""
    return (number for first, last in ranges for number in range(first, last + 1))


def load(file: str) -> dict[int, Step]:
    """The exchanges of one file of `vectors/commands`, by number."""
    lines = (VECTORS / "commands" / file).read_text().splitlines()
    entries = (json.loads(line) for line in lines)
    return {entry["n"]: _step(file, entry) for entry in entries if "n" in entry}


def _step(file: str, entry: dict[str, Any]) -> Step:
    raw = "request" in entry
    words = (unescape(entry["request"]),) if raw else tuple(unescape(word) for word in entry["args"])
    return Step(
        file=file,
        number=entry["n"],
        node=entry.get("node", "n1"),
        words=words,
        payload=words[0] if raw else request(*words),
        answer=base64.b64decode(entry["reply_b64"]),
        closed=bool(entry.get("connection_closed")),
        asked_at_ms=entry["at_ms"] - entry["took_ms"],
        answered_at_ms=entry["at_ms"],
        note=entry.get("note", ""),
    )
