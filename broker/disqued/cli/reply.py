"""Replies with the types they have on the wire, read from a blocking connection.

The shell shows a status as `PONG` and a string as `"PONG"`, so it has to tell them apart; the C parser that the client
uses gives bytes for both. A reply is short work here (one person reads it), hence a plain recursive reader. It knows
the types of RESP3 too: `HELLO 3` typed in the shell switches the connection over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable


class Status(bytes):
    """A simple string: `+OK`."""

    __slots__ = ()


@dataclass(frozen=True)
class Failure:
    """An error reply, without its leading dash."""

    text: bytes


@dataclass(frozen=True)
class Pairs:
    """A map, in the order sent."""

    items: list[tuple[Reply, Reply]]


Reply: TypeAlias = "Status | Failure | Pairs | bytes | int | float | bool | list[Reply] | None"


class Source(Protocol):
    """What replies are read from: the reading half of a socket."""

    def readline(self) -> bytes:
        """A line with its end, or less at the end of the connection."""

    def read(self, size: int, /) -> bytes:
        """That many bytes, or less at the end of the connection."""


class ReplyFormatError(Exception):
    """The server's bytes are no reply: most likely another protocol listens on that port."""


def read_reply(source: Source) -> Reply:
    """The next reply. Raises EOFError when the connection ends first, `ReplyFormatError` when it is no reply."""
    line = source.readline()
    if not line.endswith(b"\n"):
        raise EOFError("Server closed the connection")
    problem = ReplyFormatError(f"Not a reply of a Disque server: {line[:60]!r}")
    kind, text = line[:1], line[1:-2]
    reader = _READERS.get(kind)
    if reader is None or not line.endswith(b"\r\n"):
        raise problem
    try:
        return reader(text, source)
    except ValueError as error:
        raise problem from error


def _read_bulk(text: bytes, source: Source) -> bytes | None:
    length = int(text)
    if length < 0:
        return None
    data = source.read(length + 2)
    if len(data) < length + 2:
        raise EOFError("Server closed the connection within a reply")
    return data[:-2]


def _read_array(text: bytes, source: Source) -> list[Reply] | None:
    count = int(text)
    return None if count < 0 else [read_reply(source) for _ in range(count)]


def _read_map(text: bytes, source: Source) -> Pairs:
    return Pairs([(read_reply(source), read_reply(source)) for _ in range(int(text))])


def _read_verbatim(text: bytes, source: Source) -> bytes | None:
    data = _read_bulk(text, source)
    return None if data is None else data[4:]  # after the format, "txt:"


def _read_bulk_failure(text: bytes, source: Source) -> Failure:
    return Failure(_read_bulk(text, source) or b"")


_READERS: dict[bytes, Callable[[bytes, Source], Reply]] = {
    b"+": lambda text, _: Status(text),
    b"-": lambda text, _: Failure(text),
    b":": lambda text, _: int(text),
    b"$": _read_bulk,
    b"*": _read_array,
    b"_": lambda _, __: None,
    b"#": lambda text, _: text == b"t",
    b",": lambda text, _: float(text),
    b"(": lambda text, _: int(text),
    b"!": _read_bulk_failure,
    b"=": _read_verbatim,
    b"%": _read_map,
    b"~": _read_array,
    b">": _read_array,
}


def encode_request(words: list[bytes]) -> bytes:
    """The request as an array of bulk strings."""
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(parts)
