"""Kinds of values a directive may have: how each is read, shown and written.

A kind is a small value object. `read` takes the words of a configuration line, `parse` the one word of CONFIG SET; both
have the same syntax, so what the file accepts CONFIG SET accepts too. `show` is the answer of CONFIG GET, `write` the
line of CONFIG REWRITE. Errors are `BadValueError` with the text that the start-up error shows; CONFIG SET has one text
for all.
"""

from __future__ import annotations

import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from disqued.config.endpoint import HOST_NAME, is_address, parse_endpoint
from disqued.resp.integers import parse_integer
from disqued.resp.words import quote_word

BAD_DIRECTIVE: Final = "Bad directive or wrong number of arguments"

_T = TypeVar("_T")
_LARGEST: Final = (1 << 63) - 1
_SIZE: Final = re.compile(rb"([0-9]{1,19})([a-z]*)")
_ADDRESS: Final = re.compile(rb"[\w.:%*-]+")
_UNITS: Final = {
    b"": 1,
    b"b": 1,
    b"k": 1000,
    b"kb": 1 << 10,
    b"m": 1000**2,
    b"mb": 1 << 20,
    b"g": 1000**3,
    b"gb": 1 << 30,
}
_WRITTEN_UNITS: Final = (b"gb", b"mb", b"kb")


class BadValueError(ValueError):
    """A directive's words are not acceptable; the text says why."""


def decode(word: bytes) -> str:
    """Text of a configuration word; bytes that are no UTF-8 survive, as in file names of the `os` module."""
    return word.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The bytes `decode` made `text` from."""
    return text.encode("utf-8", "surrogateescape")


class Kind(ABC, Generic[_T]):
    """One kind of value."""

    def read(self, words: Sequence[bytes]) -> _T:
        """The value of a configuration line without its first word; raises BadValueError."""
        if len(words) != 1:
            raise BadValueError(BAD_DIRECTIVE)
        return self.parse(words[0])

    @abstractmethod
    def parse(self, word: bytes) -> _T:
        """The value of a CONFIG SET; raises BadValueError."""

    @abstractmethod
    def show(self, value: _T) -> bytes:
        """The value as CONFIG GET answers it."""

    def write(self, value: _T) -> bytes | None:
        """What stands behind the name in a rewritten line; None when the directive has to be absent."""
        return self.show(value)

    def merge(self, before: _T, value: _T) -> _T:  # noqa: ARG002 - most kinds forget what earlier lines said
        """The value after a further line of the same directive."""
        return value

    def is_storable(self, value: _T) -> bool:  # noqa: ARG002 - most kinds have no value that only CONFIG SET takes
        """Whether the file accepts the value again."""
        return True


@dataclass(frozen=True)
class YesNo(Kind[bool]):
    """`yes` or `no` in any case."""

    def parse(self, word: bytes) -> bool:
        """True for `yes`."""
        answer = word.lower()
        if answer not in {b"yes", b"no"}:
            raise BadValueError("argument must be 'yes' or 'no'")
        return answer == b"yes"

    def show(self, value: bool) -> bytes:
        """`yes` or `no`."""
        return b"yes" if value else b"no"


@dataclass(frozen=True)
class Integer(Kind[int]):
    """A whole number in a range. `zero_by_set`: CONFIG SET also takes 0, which the file refuses."""

    minimum: int = 0
    maximum: int = _LARGEST
    error: str = "argument must be a whole number, 0 or greater"
    zero_by_set: bool = False

    def read(self, words: Sequence[bytes]) -> int:
        """The number, in the range."""
        value = super().read(words)
        if not self.is_storable(value):
            raise BadValueError(self.error)
        return value

    def parse(self, word: bytes) -> int:
        """The number, in the range or 0 where that is allowed."""
        value = self.number(word)
        if value is None or not (self.minimum <= value <= self.maximum or (self.zero_by_set and value == 0)):
            raise BadValueError(self.error)
        return value

    def number(self, word: bytes) -> int | None:
        """The number that the word stands for, None for none."""
        return parse_integer(word)

    def show(self, value: int) -> bytes:
        """In decimal."""
        return b"%d" % value

    def is_storable(self, value: int) -> bool:
        """Whether it is in the range."""
        return self.minimum <= value <= self.maximum


class IfFree(int):
    """A port that nobody asked for: it is taken if no other process has it."""


@dataclass(frozen=True)
class Clamped(Integer):
    """A whole number that is moved into `lowest` to `highest` instead of being refused."""

    lowest: int = 0
    highest: int = _LARGEST

    def parse(self, word: bytes) -> int:
        """The number in the bounds that is closest."""
        return min(max(super().parse(word), self.lowest), self.highest)


@dataclass(frozen=True)
class Count(Integer):
    """How many of something there may be, or `all` of it, which is the largest number there is."""

    error: str = "argument must be a whole number, 0 or greater, or 'all'"

    def number(self, word: bytes) -> int | None:
        """The number, or all."""
        return {b"all": _LARGEST}.get(word.lower(), parse_integer(word))

    def show(self, value: int) -> bytes:
        """In decimal, or `all`."""
        return b"all" if value == _LARGEST else super().show(value)


@dataclass(frozen=True)
class Seconds(Integer):
    """A time in seconds that CONFIG GET shows as a switch; `yes` means 1, `no` means 0."""

    def number(self, word: bytes) -> int | None:
        """Seconds, or a switch."""
        return {b"yes": 1, b"no": 0}.get(word.lower(), parse_integer(word))

    def show(self, value: int) -> bytes:
        """`yes` when it is on."""
        return b"yes" if value else b"no"

    def write(self, value: int) -> bytes:
        """In seconds."""
        return b"%d" % value


@dataclass(frozen=True)
class Octal(Integer):
    """Permission bits in octal digits."""

    def number(self, word: bytes) -> int | None:
        """The bits."""
        return int(word, 8) if re.fullmatch(rb"[0-7]{1,12}", word) else None

    def show(self, value: int) -> bytes:
        """In octal."""
        return b"%o" % value


@dataclass(frozen=True)
class Size(Integer):
    """Bytes, with a unit or without: k, m and g count by 1000, kb, mb and gb by 1024."""

    def number(self, word: bytes) -> int:
        """The bytes; raises BadValueError."""
        match = _SIZE.fullmatch(word.lower())
        if match is None or match[2] not in _UNITS:
            raise BadValueError(
                "argument must be a memory size: digits and one of the units b, k, kb, m, mb, g, gb or none"
            )
        return int(match[1]) * _UNITS[match[2]]

    def write(self, value: int) -> bytes:
        """With the largest unit that leaves no rest."""
        for unit in _WRITTEN_UNITS:
            count, rest = divmod(value, _UNITS[unit])
            if value and not rest:
                return b"%d%b" % (count, unit)
        return b"%d" % value


@dataclass(frozen=True, slots=True)
class MemoryShare:
    """An amount of memory: bytes, or if these are 0 a percentage of what there is."""

    size_bytes: int = 0
    percent: int = 0

    def of(self, system_bytes: int) -> int:
        """The bytes, where there are `system_bytes`."""
        return self.size_bytes or system_bytes * self.percent // 100


@dataclass(frozen=True)
class Memory(Kind[MemoryShare]):
    """Bytes as in `Size`, or `75%` of what there is. CONFIG SET also takes 0, which the file refuses."""

    def read(self, words: Sequence[bytes]) -> MemoryShare:
        """The amount, more than nothing."""
        value = super().read(words)
        if not self.is_storable(value):
            raise BadValueError("You need to specify a memory limit greater than zero")
        return value

    def parse(self, word: bytes) -> MemoryShare:
        """The amount, or 0 for no limit."""
        digits = word.removesuffix(b"%")
        if digits == word:
            return MemoryShare(Size().parse(word))
        percent = parse_integer(digits)
        if percent is None or not 1 <= percent <= 100:
            raise BadValueError("a share of the memory must be a whole percentage, 1% to 100%")
        return MemoryShare(percent=percent)

    def show(self, value: MemoryShare) -> bytes:
        """As it was set, sizes in bytes."""
        return b"%d%%" % value.percent if value.percent else b"%d" % value.size_bytes

    def write(self, value: MemoryShare) -> bytes:
        """As it was set, sizes with units."""
        return self.show(value) if value.percent else Size().write(value.size_bytes)

    def is_storable(self, value: MemoryShare) -> bool:
        """Whether it is a limit at all."""
        return value != MemoryShare()


@dataclass(frozen=True)
class Choice(Kind[str]):
    """One of a few words, in any case."""

    choices: tuple[str, ...]

    def parse(self, word: bytes) -> str:
        """The word as it stands in `choices`."""
        choice = decode(word).lower()
        if choice not in self.choices:
            raise BadValueError(f"argument must be one of {', '.join(self.choices)}")
        return choice

    def show(self, value: str) -> bytes:
        """The word."""
        return value.encode()


@dataclass(frozen=True)
class Text(Kind[str]):
    """A path or a name. `optional`: the empty text stands for none, and is not written."""

    optional: bool = False

    def parse(self, word: bytes) -> str:
        """Any text without zero bytes, which neither paths nor names may hold."""
        if b"\0" in word:
            raise BadValueError("argument must not contain a zero byte")
        return decode(word)

    def show(self, value: str) -> bytes:
        """The text."""
        return encode(value)

    def write(self, value: str) -> bytes | None:
        """In double quotes."""
        return None if self.optional and not value else quote_word(encode(value))


@dataclass(frozen=True)
class FileName(Text):
    """The name of a file in the working directory."""

    def parse(self, word: bytes) -> str:
        """A name without separators."""
        if b"/" in word or b"\\" in word:
            raise BadValueError("appendfilename can't be a path, just a filename")
        return super().parse(word)


@dataclass(frozen=True)
class Directory(Text):
    """A directory; a relative one starts at the directory of the lines before."""

    def merge(self, before: str, value: str) -> str:
        """Where a change of directory from `before` leads."""
        return posixpath.join(before, value)


@dataclass(frozen=True)
class Address(Text):
    """A literal address, or nothing."""

    def parse(self, word: bytes) -> str:
        """IPv4 or IPv6."""
        text = super().parse(word)
        if text and not is_address(text):
            raise BadValueError("argument must be an IP address, or empty for none")
        return text


@dataclass(frozen=True)
class HostName(Text):
    """The name of a host, or nothing."""

    def parse(self, word: bytes) -> str:
        """Letters, digits, dots, hyphens, underscores."""
        text = super().parse(word)
        if text and not HOST_NAME.fullmatch(text):
            raise BadValueError("argument must be the name of a host, or empty for none")
        return text


@dataclass(frozen=True)
class Password(Kind[bytes]):
    """A secret; the empty one stands for none, and is not written."""

    longest: int

    def parse(self, word: bytes) -> bytes:
        """Any bytes, not too many."""
        if len(word) > self.longest:
            raise BadValueError(f"Password is longer than {self.longest} bytes")
        return word

    def show(self, value: bytes) -> bytes:
        """In clear, as the original."""
        return value

    def write(self, value: bytes) -> bytes | None:
        """In double quotes."""
        return quote_word(value) if value else None


@dataclass(frozen=True)
class Addresses(Kind[tuple[str, ...]]):
    """Several addresses, separated by blanks; none stands for all of the machine's."""

    most: int

    def read(self, words: Sequence[bytes]) -> tuple[str, ...]:
        """One address or more."""
        if not words:
            raise BadValueError(BAD_DIRECTIVE)
        if len(words) > self.most:
            raise BadValueError("Too many bind addresses specified")
        if not all(map(_ADDRESS.fullmatch, words)):
            raise BadValueError("a bind address must be an IP address or a host name")
        return tuple(map(decode, words))

    def parse(self, word: bytes) -> tuple[str, ...]:
        """The addresses of one text."""
        return self.read(word.split())

    def show(self, value: tuple[str, ...]) -> bytes:
        """With blanks between them."""
        return encode(" ".join(value))

    def write(self, value: tuple[str, ...]) -> bytes | None:
        """With blanks between them."""
        return self.show(value) if value else None


@dataclass(frozen=True)
class Endpoints(Kind[tuple[str, ...]]):
    """Places of other nodes, separated by blanks, or none; see `endpoint`."""

    def read(self, words: Sequence[bytes]) -> tuple[str, ...]:
        """Any number of them."""
        places = [place for word in words for place in decode(word).split()]
        for place in places:
            if parse_endpoint(place) is None:
                raise BadValueError(f"'{place}' is no seed: host, host:port or host:port@bus-port is expected")
        return tuple(places)

    def parse(self, word: bytes) -> tuple[str, ...]:
        """The places of one text."""
        return self.read([word])

    def show(self, value: tuple[str, ...]) -> bytes:
        """With blanks between them."""
        return encode(" ".join(value))

    def write(self, value: tuple[str, ...]) -> bytes | None:
        """With blanks between them."""
        return self.show(value) if value else None


@dataclass(frozen=True)
class OutputLimit(Kind[tuple[int, int, int]]):
    """`normal hard soft seconds`: (hard limit in bytes, soft limit in bytes, seconds above the soft limit)."""

    def read(self, words: Sequence[bytes]) -> tuple[int, int, int]:
        """The last group of four words; there is only one class of clients."""
        if not words or len(words) % 4:
            raise BadValueError(BAD_DIRECTIVE)
        groups = [self._read_group(*words[start : start + 4]) for start in range(0, len(words), 4)]
        return groups[-1]

    @staticmethod
    def _read_group(client_class: bytes, hard: bytes, soft: bytes, seconds: bytes) -> tuple[int, int, int]:
        if client_class.lower() != b"normal":
            raise BadValueError("Unrecognized client limit class, the only one is 'normal'")
        return Size().parse(hard), Size().parse(soft), Integer().parse(seconds)

    def parse(self, word: bytes) -> tuple[int, int, int]:
        """The groups of one text."""
        return self.read(word.split())

    def show(self, value: tuple[int, int, int]) -> bytes:
        """Sizes in bytes."""
        return b"normal %d %d %d" % value

    def write(self, value: tuple[int, int, int]) -> bytes:
        """Sizes with units."""
        hard, soft, seconds = value
        return b"normal %b %b %d" % (Size().write(hard), Size().write(soft), seconds)


@dataclass(frozen=True)
class Renames(Kind[tuple[tuple[bytes, bytes], ...]]):
    """Pairs (old command name, new command name), collected from all lines."""

    def read(self, words: Sequence[bytes]) -> tuple[tuple[bytes, bytes], ...]:
        """One pair."""
        if len(words) != 2:
            raise BadValueError(BAD_DIRECTIVE)
        return ((words[0], words[1]),)

    def parse(self, word: bytes) -> tuple[tuple[bytes, bytes], ...]:
        """The pair of one text."""
        return self.read(word.split())

    def show(self, value: tuple[tuple[bytes, bytes], ...]) -> bytes:
        """The pairs, in the words of the file."""
        return b" ".join(b"%b %b" % (quote_word(old), quote_word(new)) for old, new in value)

    def merge(
        self, before: tuple[tuple[bytes, bytes], ...], value: tuple[tuple[bytes, bytes], ...]
    ) -> tuple[tuple[bytes, bytes], ...]:
        """The pairs in the order of the lines."""
        return before + value
