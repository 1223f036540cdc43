"""Reads replies with their wire types, in RESP2 and RESP3.

For callers that distinguish simple from bulk strings, or that keep only the beginning of long strings. Callers that
need speed use hiredis instead (`disqued.client.wire.Decoder`), which returns bytes for both kinds of strings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_CRLF_BYTES: Final = 2


class Status(bytes):
    """A simple string: `+OK`."""

    __slots__ = ()


class Truncated(bytes):
    """The beginning of a long string; `size_bytes` is the length of the whole string."""

    size_bytes: int

    def __new__(cls, beginning: bytes, size_bytes: int) -> Self:
        """Create the string from the kept bytes."""
        string = super().__new__(cls, beginning)
        string.size_bytes = size_bytes
        return string


@dataclass(frozen=True)
class Failure:
    """An error reply, without its leading dash."""

    text: bytes

    @property
    def message(self) -> str:
        """The text as a `str`; bytes that are not UTF-8 are escaped."""
        return self.text.decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class Pairs:
    """A map, in the order of the wire."""

    items: list[tuple[Reply, Reply]]


Reply: TypeAlias = "Status | Failure | Pairs | bytes | int | float | bool | list[Reply] | None"


class ReplyFormatError(Exception):
    """The bytes are not a reply. Usually the server speaks another protocol."""


class Source(Protocol):
    """A source of replies."""

    def read_line(self) -> bytes:
        """Return the next line with its line end; without one at the end of the input."""

    def read_string(self, size_bytes: int) -> bytes:
        """Return a string of that length, possibly `Truncated`, and skip its line end. Raises EOFError."""


class StreamSource:
    """Reads from a file, such as the reading half of a blocking socket."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read_line(self) -> bytes:
        """Return the next line."""
        return self._file.readline()

    def read_string(self, size_bytes: int) -> bytes:
        """Return the whole string."""
        data = self._file.read(size_bytes + _CRLF_BYTES)
        if len(data) < size_bytes + _CRLF_BYTES:
            raise _cut_off()
        return data[:-_CRLF_BYTES]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ChunkSource:
    """Reads from chunks in memory, and copies at most `max_bytes` of each string, because bodies can be large."""

    def __init__(self, chunks: Iterable[bytes | bytearray | memoryview], max_bytes: int) -> None:
        self._chunks = iter(chunks)
        self._chunk = b""
        self._position = 0
        self._max_bytes = max_bytes

    def has_more(self) -> bool:
        """Whether anything is left to read."""
        while self._position >= len(self._chunk):
            following = next(self._chunks, None)
            if following is None:
                return False
            self._chunk, self._position = bytes(following), 0
        return True

    def read_line(self) -> bytes:
        """Return the next line."""
        line = b""
        while not line.endswith(b"\r\n") and self.has_more():
            end = self._chunk.find(b"\n", self._position) + 1 or len(self._chunk)
            line += self._chunk[self._position : end]
            self._position = end
        return line

    def read_string(self, size_bytes: int) -> bytes:
        """Return the string, or its first `max_bytes`."""
        data = self._take(size_bytes, self._max_bytes)
        self._take(_CRLF_BYTES, 0)
        return data if len(data) == size_bytes else Truncated(data, size_bytes)

    def _take(self, size_bytes: int, keep_bytes: int) -> bytes:
        """Skip `size_bytes`, and return the first `keep_bytes` of them."""
        kept = b""
        while size_bytes > 0:
            if not self.has_more():
                raise _cut_off()
            here = min(len(self._chunk) - self._position, size_bytes)
            wanted = min(here, keep_bytes - len(kept))
            kept += self._chunk[self._position : self._position + wanted]
            self._position += here
            size_bytes -= here
        return kept


def read_reply(source: Source) -> Reply:
    """Read the next reply.

    Raises:
        EOFError: the input ends before the reply does.
        ReplyFormatError: the bytes are not a reply.
    """
    line = source.read_line()
    if not line.endswith(b"\n"):
        raise _cut_off()
    problem = ReplyFormatError(f"Not a reply of a Disque server: {line[:60]!r}")
    reader = _READERS.get(line[:1])
    if reader is None or not line.endswith(b"\r\n"):
        raise problem
    try:
        return reader(line[1:-_CRLF_BYTES], source)
    except ValueError as error:
        raise problem from error


def read_replies(chunks: Iterable[bytes | bytearray | memoryview], max_bytes: int) -> list[Reply]:
    """Read all replies in the chunks, which must be complete; longer strings are truncated to `max_bytes`."""
    source = ChunkSource(chunks, max_bytes)
    replies: list[Reply] = []
    while source.has_more():
        replies.append(read_reply(source))
    return replies


def _cut_off() -> EOFError:
    return EOFError("Server closed the connection")


def _read_bulk(text: bytes, source: Source) -> bytes | None:
    size_bytes = int(text)
    return None if size_bytes < 0 else source.read_string(size_bytes)


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


_READERS: Final[dict[bytes, Callable[[bytes, Source], Reply]]] = {
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
