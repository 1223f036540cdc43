"""Kinds of directive values: how each kind is read, shown and written.

A kind is a small value object. `read` takes the words of a configuration line, `parse` the single word of CONFIG SET;
both have the same syntax, so CONFIG SET accepts every value that the file accepts. `show` is the reply of CONFIG GET,
`write` the line of CONFIG REWRITE. Errors are `BadValueError` with the text that the server prints at start; CONFIG SET
has one text for all of them.
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
MAX_NUMBER: Final = 10**12
"""The largest number without a bound of its own. A million times as much still has 64 bits, for other units."""
_SIZE: Final = re.compile(rb"([0-9]{1,19})([a-z]*)")
_ADDRESS: Final = re.compile(rb"[\w.:%*-]+")
ZONE_NAME: Final = re.compile(r"[\w.-]{1,63}", re.ASCII)
"""The values of labels in Kubernetes, and a few more."""
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
    """The value of a directive is invalid; the text says why."""


def decode(word: bytes) -> str:
    """Decode a configuration word; bytes that are not UTF-8 become surrogate escapes, as in the `os` module."""
    return word.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Encode a text from `decode`; returns the original bytes."""
    return text.encode("utf-8", "surrogateescape")


class Kind(ABC, Generic[_T]):
    """A kind of directive value."""

    def read(self, words: Sequence[bytes]) -> _T:
        """The value for the words of a configuration line after the directive. Raises BadValueError."""
        if len(words) != 1:
            raise BadValueError(BAD_DIRECTIVE)
        return self.parse(words[0])

    @abstractmethod
    def parse(self, word: bytes) -> _T:
        """The value for the word of a CONFIG SET. Raises BadValueError."""

    @abstractmethod
    def show(self, value: _T) -> bytes:
        """The value as CONFIG GET shows it."""

    def write(self, value: _T) -> bytes | None:
        """The words after the directive in a rewritten line; None if the line must be removed."""
        return self.show(value)

    def merge(self, before: _T, value: _T) -> _T:  # noqa: ARG002 - most kinds ignore earlier lines
        """The value after another line of the same directive."""
        return value

    def is_storable(self, value: _T) -> bool:  # noqa: ARG002 - most kinds have no value that only CONFIG SET accepts
        """Whether a configuration file accepts the value."""
        return True


@dataclass(frozen=True)
class YesNo(Kind[bool]):
    """`yes` or `no`, case-insensitive."""

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
    """A whole number in a range. `zero_by_set`: CONFIG SET also accepts 0, which the file refuses."""

    minimum: int = 0
    maximum: int = MAX_NUMBER
    error: str = "argument must be a whole number, 0 or greater"
    zero_by_set: bool = False

    def read(self, words: Sequence[bytes]) -> int:
        """The number, which must be in the range."""
        value = super().read(words)
        if not self.is_storable(value):
            raise BadValueError(self.error)
        return value

    def parse(self, word: bytes) -> int:
        """The number, which must be in the range, or 0 with `zero_by_set`."""
        value = self.number(word)
        if value is not None and value > self.maximum == MAX_NUMBER:
            raise BadValueError(f"argument must be at most {MAX_NUMBER}")
        if value is None or not (self.minimum <= value <= self.maximum or (self.zero_by_set and value == 0)):
            raise BadValueError(self.error)
        return value

    def number(self, word: bytes) -> int | None:
        """The number that the word stands for; None if it is not a number."""
        return parse_integer(word)

    def show(self, value: int) -> bytes:
        """The number in decimal."""
        return b"%d" % value

    def is_storable(self, value: int) -> bool:
        """Whether the number is in the range."""
        return self.minimum <= value <= self.maximum


class IfFree(int):
    """A default port: the server uses it only if no other process does."""


@dataclass(frozen=True)
class Clamped(Integer):
    """A whole number; values outside `lowest` to `highest` are set to the nearest bound instead of refused."""

    lowest: int = 0
    highest: int = _LARGEST

    def parse(self, word: bytes) -> int:
        """The nearest number within the bounds."""
        return min(max(super().parse(word), self.lowest), self.highest)


@dataclass(frozen=True)
class Count(Integer):
    """A number of items, or `all`, which is represented by the largest number."""

    maximum: int = _LARGEST
    error: str = "argument must be a whole number, 0 or greater, or 'all'"

    def number(self, word: bytes) -> int | None:
        """The number, or the largest one for `all`."""
        return {b"all": _LARGEST}.get(word.lower(), parse_integer(word))

    def show(self, value: int) -> bytes:
        """The number in decimal, or `all`."""
        return b"all" if value == _LARGEST else super().show(value)


@dataclass(frozen=True)
class Seconds(Integer):
    """Seconds, which CONFIG GET shows as `yes` or `no`; `yes` means 1 and `no` means 0."""

    def number(self, word: bytes) -> int | None:
        """The seconds; 1 for `yes` and 0 for `no`."""
        return {b"yes": 1, b"no": 0}.get(word.lower(), parse_integer(word))

    def show(self, value: int) -> bytes:
        """`no` for 0 seconds, otherwise `yes`."""
        return b"yes" if value else b"no"

    def write(self, value: int) -> bytes:
        """The seconds in decimal."""
        return b"%d" % value


@dataclass(frozen=True)
class Octal(Integer):
    """Permission bits in octal digits."""

    def number(self, word: bytes) -> int | None:
        """The permission bits; None if the word is not octal."""
        return int(word, 8) if re.fullmatch(rb"[0-7]{1,12}", word) else None

    def show(self, value: int) -> bytes:
        """The permission bits in octal."""
        return b"%o" % value


@dataclass(frozen=True)
class Size(Integer):
    """Bytes with an optional unit: k, m and g are powers of 1000; kb, mb and gb are powers of 1024."""

    def number(self, word: bytes) -> int:
        """The size in bytes. Raises BadValueError."""
        match = _SIZE.fullmatch(word.lower())
        if match is None or match[2] not in _UNITS:
            raise BadValueError(
                "argument must be a memory size: digits and one of the units b, k, kb, m, mb, g, gb or none"
            )
        return int(match[1]) * _UNITS[match[2]]

    def write(self, value: int) -> bytes:
        """The size with the largest unit that leaves no remainder."""
        for unit in _WRITTEN_UNITS:
            count, rest = divmod(value, _UNITS[unit])
            if value and not rest:
                return b"%d%b" % (count, unit)
        return b"%d" % value


@dataclass(frozen=True, slots=True)
class MemoryShare:
    """An amount of memory: bytes, or a percentage of the system's memory if the bytes are 0."""

    size_bytes: int = 0
    percent: int = 0

    def of(self, system_bytes: int) -> int:
        """The amount in bytes on a system with `system_bytes` of memory."""
        return self.size_bytes or system_bytes * self.percent // 100


@dataclass(frozen=True)
class Memory(Kind[MemoryShare]):
    """A `Size`, or a percentage such as `75%`. CONFIG SET also accepts 0, which the file refuses."""

    def read(self, words: Sequence[bytes]) -> MemoryShare:
        """The amount, which must be greater than zero."""
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
            raise BadValueError("memory percentage must be a whole number from 1% to 100%")
        return MemoryShare(percent=percent)

    def show(self, value: MemoryShare) -> bytes:
        """The percentage, or the size in bytes."""
        return b"%d%%" % value.percent if value.percent else b"%d" % value.size_bytes

    def write(self, value: MemoryShare) -> bytes:
        """The percentage, or the size with its unit."""
        return self.show(value) if value.percent else Size().write(value.size_bytes)

    def is_storable(self, value: MemoryShare) -> bool:
        """Whether the value is a limit; a file cannot set 0."""
        return value != MemoryShare()


@dataclass(frozen=True)
class Choice(Kind[str]):
    """One of several words, case-insensitive."""

    choices: tuple[str, ...]

    def parse(self, word: bytes) -> str:
        """The word, spelled as in `choices`."""
        choice = decode(word).lower()
        if choice not in self.choices:
            raise BadValueError(f"argument must be one of {', '.join(self.choices)}")
        return choice

    def show(self, value: str) -> bytes:
        """The word."""
        return value.encode()


@dataclass(frozen=True)
class Text(Kind[str]):
    """A path or a name. With `optional`, the empty text means no value and is not written."""

    optional: bool = False

    def parse(self, word: bytes) -> str:
        """Any text without zero bytes, which paths and names cannot contain."""
        if b"\0" in word:
            raise BadValueError("argument must not contain a zero byte")
        return decode(word)

    def show(self, value: str) -> bytes:
        """The text, encoded."""
        return encode(value)

    def write(self, value: str) -> bytes | None:
        """The text in double quotes."""
        return None if self.optional and not value else quote_word(encode(value))


@dataclass(frozen=True)
class FileName(Text):
    """The name of a file in the working directory. Errors name the directive `of`."""

    of: str = "appendfilename"

    def parse(self, word: bytes) -> str:
        """A file name without path separators."""
        if b"/" in word or b"\\" in word:
            raise BadValueError(f"{self.of} can't be a path, just a filename")
        return super().parse(word)


@dataclass(frozen=True)
class Directory(Text):
    """A directory; a relative path starts at the directory that earlier lines set."""

    def merge(self, before: str, value: str) -> str:
        """The directory after changing from `before` to `value`."""
        return posixpath.join(before, value)


@dataclass(frozen=True)
class Address(Text):
    """An IP address, or the empty text."""

    def parse(self, word: bytes) -> str:
        """An IPv4 or IPv6 address."""
        text = super().parse(word)
        if text and not is_address(text):
            raise BadValueError("argument must be an IP address, or empty for none")
        return text


@dataclass(frozen=True)
class ZoneName(Text):
    """The name of a zone, or the empty text."""

    def parse(self, word: bytes) -> str:
        """A name as in the values of Kubernetes' labels."""
        text = super().parse(word)
        if text and not ZONE_NAME.fullmatch(text):
            raise BadValueError("argument must be at most 63 letters, digits, dots, hyphens and underscores")
        return text


@dataclass(frozen=True)
class HostName(Text):
    """A host name, or the empty text."""

    def parse(self, word: bytes) -> str:
        """A name of letters, digits, dots, hyphens and underscores."""
        text = super().parse(word)
        if text and not HOST_NAME.fullmatch(text):
            raise BadValueError("argument must be a host name, or empty for none")
        return text


@dataclass(frozen=True)
class Password(Kind[bytes]):
    """A secret. The empty password means no password and is not written."""

    longest: int

    def parse(self, word: bytes) -> bytes:
        """Any bytes, at most `longest`."""
        if len(word) > self.longest:
            raise BadValueError(f"Password is longer than {self.longest} bytes")
        return word

    def show(self, value: bytes) -> bytes:
        """The password in plain text, as the original shows it."""
        return value

    def write(self, value: bytes) -> bytes | None:
        """The password in double quotes."""
        return quote_word(value) if value else None


@dataclass(frozen=True)
class Addresses(Kind[tuple[str, ...]]):
    """Addresses separated by blanks; none means all addresses of the machine."""

    most: int

    def read(self, words: Sequence[bytes]) -> tuple[str, ...]:
        """One or more addresses."""
        if not words:
            raise BadValueError(BAD_DIRECTIVE)
        if len(words) > self.most:
            raise BadValueError("Too many bind addresses specified")
        if not all(map(_ADDRESS.fullmatch, words)):
            raise BadValueError("a bind address must be an IP address or a host name")
        return tuple(map(decode, words))

    def parse(self, word: bytes) -> tuple[str, ...]:
        """The addresses in one word, separated by blanks."""
        return self.read(word.split())

    def show(self, value: tuple[str, ...]) -> bytes:
        """The values separated by blanks."""
        return encode(" ".join(value))

    def write(self, value: tuple[str, ...]) -> bytes | None:
        """The values separated by blanks; None if there are none."""
        return self.show(value) if value else None


@dataclass(frozen=True)
class Endpoints(Kind[tuple[str, ...]]):
    """Endpoints of other nodes, separated by blanks; may be empty. See `endpoint`."""

    def read(self, words: Sequence[bytes]) -> tuple[str, ...]:
        """Any number of endpoints."""
        seeds = [seed for word in words for seed in decode(word).split()]
        for seed in seeds:
            if parse_endpoint(seed) is None:
                raise BadValueError(f"'{seed}' is not a seed: expected host, host:port or host:port@bus-port")
        return tuple(seeds)

    def parse(self, word: bytes) -> tuple[str, ...]:
        """The endpoints in one word, separated by blanks."""
        return self.read([word])

    def show(self, value: tuple[str, ...]) -> bytes:
        """The values separated by blanks."""
        return encode(" ".join(value))

    def write(self, value: tuple[str, ...]) -> bytes | None:
        """The values separated by blanks; None if there are none."""
        return self.show(value) if value else None


@dataclass(frozen=True)
class ExternalAddress(Text):
    """An address with a port, and perhaps one for TLS: `host:port` or `host:port@tls-port`; may be empty."""

    optional: bool = True

    def parse(self, word: bytes) -> str:
        """The address as it is."""
        text = super().parse(word)
        found = parse_endpoint(text) if text else None
        if text and (found is None or not found.port):
            raise BadValueError(f"'{text}' is not an external address: expected host:port or host:port@tls-port")
        return text


@dataclass(frozen=True)
class OutputLimit(Kind[tuple[int, int, int]]):
    """`normal HARD SOFT SECONDS`: hard limit in bytes, soft limit in bytes, seconds above the soft limit."""

    def read(self, words: Sequence[bytes]) -> tuple[int, int, int]:
        """The limits in the last group of four words; `normal` is the only class of clients."""
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
        """The limits in one word, separated by blanks."""
        return self.read(word.split())

    def show(self, value: tuple[int, int, int]) -> bytes:
        """The limits with sizes in bytes."""
        return b"normal %d %d %d" % value

    def write(self, value: tuple[int, int, int]) -> bytes:
        """The limits with units of sizes."""
        hard, soft, seconds = value
        return b"normal %b %b %d" % (Size().write(hard), Size().write(soft), seconds)


@dataclass(frozen=True)
class Renames(Kind[tuple[tuple[bytes, bytes], ...]]):
    """Pairs (old name, new name) of commands, collected from all lines."""

    def read(self, words: Sequence[bytes]) -> tuple[tuple[bytes, bytes], ...]:
        """The pair of one line."""
        if len(words) != 2:
            raise BadValueError(BAD_DIRECTIVE)
        return ((words[0], words[1]),)

    def parse(self, word: bytes) -> tuple[tuple[bytes, bytes], ...]:
        """The pair in one word, separated by blanks."""
        return self.read(word.split())

    def show(self, value: tuple[tuple[bytes, bytes], ...]) -> bytes:
        """The pairs as quoted words."""
        return b" ".join(b"%b %b" % (quote_word(old), quote_word(new)) for old, new in value)

    def merge(
        self, before: tuple[tuple[bytes, bytes], ...], value: tuple[tuple[bytes, bytes], ...]
    ) -> tuple[tuple[bytes, bytes], ...]:
        """All pairs, in the order of the lines."""
        return before + value


@dataclass(frozen=True)
class UserLines(Kind[tuple[tuple[bytes, ...], ...]]):
    """Users, each a name and its rules, collected from all lines."""

    def read(self, words: Sequence[bytes]) -> tuple[tuple[bytes, ...], ...]:
        """The user of one line."""
        if not words:
            raise BadValueError(BAD_DIRECTIVE)
        return (tuple(words),)

    def parse(self, word: bytes) -> tuple[tuple[bytes, ...], ...]:
        """The user in one word, separated by blanks."""
        return self.read(word.split())

    def show(self, value: tuple[tuple[bytes, ...], ...]) -> bytes:
        """The users, one per line."""
        return b"\n".join(b" ".join(words) for words in value)

    def merge(
        self, before: tuple[tuple[bytes, ...], ...], value: tuple[tuple[bytes, ...], ...]
    ) -> tuple[tuple[bytes, ...], ...]:
        """All users, in the order of the lines."""
        return before + value
