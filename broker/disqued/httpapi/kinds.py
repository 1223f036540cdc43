"""The kinds of values in requests: how they are read, and which words of a command they are.

All values that are wrong raise InvalidValueError with a text that continues the name of the field.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from disqued.core.queues.settingsindex import is_pattern

Schema: TypeAlias = dict[str, Any]
"""A JSON schema, as OpenAPI 3.1 uses it."""
_INTEGER: Final = re.compile(r"-?[0-9]{1,20}")
_TOKEN: Final = re.compile(r"[0-9]{1,19}")
_FLAGS: Final = {"true": True, "false": False}


class InvalidValueError(ValueError):
    """A value is refused. The text continues the name of its field: `must be …`."""


class Kind(ABC):
    """A kind of values. Unless it says otherwise, a value is one word of the command, and the same text in a query."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The JSON schema of the value."""

    @abstractmethod
    def read(self, value: object) -> Any:
        """Check a value from JSON, or the bytes of a part of the path. Raises InvalidValueError."""

    def read_text(self, text: str) -> Any:
        """Check a value from the query string. Raises InvalidValueError."""
        return self.read(text)

    def words(self, value: Any) -> list[bytes]:
        """The words of the command."""
        return [value]

    def option(self, name: bytes, value: Any) -> list[bytes]:
        """The words of the command if the value belongs to an option."""
        return [name, *self.words(value)]


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidValueError("must be valid Unicode text") from None


@dataclass(frozen=True)
class Integer(Kind):
    """An integer between two bounds."""

    least: int
    most: int

    @property
    def schema(self) -> Schema:
        """The JSON schema of the value."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}

    def read(self, value: object) -> int:
        """Check a number."""
        if not isinstance(value, int) or isinstance(value, bool) or not self.least <= value <= self.most:
            raise InvalidValueError(f"must be an integer from {self.least} to {self.most}")
        return value

    def read_text(self, text: str) -> int:
        """Check digits."""
        return self.read(int(text) if _INTEGER.fullmatch(text) else None)

    def words(self, value: int) -> list[bytes]:
        """The number."""
        return [b"%d" % value]


@dataclass(frozen=True)
class Token(Kind):
    """The claim of a delivery: an integer as text, because JSON readers round integers above 2^53."""

    @property
    def schema(self) -> Schema:
        """The JSON schema of the value."""
        return {"type": "string", "pattern": "^[0-9]{1,19}$", "maxLength": 19}

    def read(self, value: object) -> bytes:
        """Check digits."""
        if not isinstance(value, str) or not _TOKEN.fullmatch(value):
            raise InvalidValueError("must be a claim, as text")
        return value.encode()


class Wait(Integer):
    """How long a command may wait, in milliseconds; 0 is not at all, which GETJOB calls NOHANG."""

    def __init__(self, most: int) -> None:
        super().__init__(0, most)

    def option(self, name: bytes, value: int) -> list[bytes]:
        """The option with the time, or NOHANG."""
        return super().option(name, value) if value else [b"NOHANG"]


@dataclass(frozen=True)
class Flag(Kind):
    """True or false; an option without a value."""

    @property
    def schema(self) -> Schema:
        """The JSON schema of the value."""
        return {"type": "boolean"}

    def read(self, value: object) -> bool:
        """Check a boolean."""
        if not isinstance(value, bool):
            raise InvalidValueError("must be true or false")
        return value

    def read_text(self, text: str) -> bool:
        """Check a word."""
        return self.read(_FLAGS.get(text))

    def option(self, name: bytes, value: bool) -> list[bytes]:
        """The option, if it is true."""
        return [name] if value else []


class YesNo(Flag):
    """True or false; an option with the value yes or no."""

    def option(self, name: bytes, value: bool) -> list[bytes]:
        """The option with its value."""
        return [name, b"yes" if value else b"no"]


@dataclass(frozen=True)
class Text(Kind):
    """Text, also the name of a queue or a job ID; in a path any bytes."""

    most_bytes: int
    example: str = ""

    @property
    def schema(self) -> Schema:
        """The JSON schema of the value."""
        found: Schema = {"type": "string", "maxLength": self.most_bytes}
        return found | {"examples": [self.example]} if self.example else found

    def read(self, value: object) -> bytes:
        """Check a text."""
        data = value if isinstance(value, bytes) else _utf8(value) if isinstance(value, str) else None
        if data is None or len(data) > self.most_bytes:
            raise InvalidValueError(f"must be text of at most {self.most_bytes} bytes")
        return data


class Name(Text):
    """A name that is not a pattern: commands that take either would answer with a list."""

    @property
    def schema(self) -> Schema:
        """The JSON schema of the value."""
        return super().schema | {"pattern": "^[^*?[]+$"}

    def read(self, value: object) -> bytes:
        """Check a name."""
        name = super().read(value)
        if not name or is_pattern(name):
            raise InvalidValueError("must not be empty, and not contain *, ? or [")
        return name


@dataclass(frozen=True)
class Texts(Kind):
    """A list of texts. As an option, it is repeated for each."""

    of: Text
    most: int

    @property
    def schema(self) -> Schema:
        """The JSON schema of the value."""
        return {"type": "array", "items": self.of.schema, "maxItems": self.most}

    def read(self, value: object) -> list[bytes]:
        """Check a list."""
        if not isinstance(value, list) or len(value) > self.most:
            raise InvalidValueError(f"must be a list of at most {self.most} texts")
        return [self.of.read(one) for one in value]

    def read_text(self, text: str) -> list[bytes]:
        """Check texts with commas between them."""
        return self.read(text.split(","))

    def words(self, value: list[bytes]) -> list[bytes]:
        """The texts."""
        return value

    def option(self, name: bytes, value: list[bytes]) -> list[bytes]:
        """The option with each text."""
        return [word for one in value for word in (name, one)]


@dataclass(frozen=True)
class OneOf(Kind):
    """One of some words, which the command has in upper case."""

    choices: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """The JSON schema of the value."""
        return {"type": "string", "enum": list(self.choices)}

    def read(self, value: object) -> bytes:
        """Check a word."""
        if value not in self.choices:
            raise InvalidValueError(f"must be one of: {', '.join(self.choices)}")
        return str(value).encode()


@dataclass(frozen=True)
class Data(Kind):
    """Bytes: text in the field of that name, or any bytes as base64 in the field with `_base64` behind its name."""

    most_bytes: int

    @property
    def schema(self) -> Schema:
        """The JSON schema of the field with the text."""
        return Text(self.most_bytes).schema

    @property
    def base64_schema(self) -> Schema:
        """The JSON schema of the field with base64."""
        return {"type": "string", "contentEncoding": "base64"}

    def read(self, value: object) -> bytes:
        """Check the text."""
        return Text(self.most_bytes).read(value)

    def read_base64(self, value: object) -> bytes:
        """Check the base64."""
        try:
            data = b64decode(value.encode("ascii"), validate=True) if isinstance(value, str) else None
        except (Base64Error, UnicodeEncodeError):
            data = None
        if data is None:
            raise InvalidValueError("must be base64")
        return self.read(data)
