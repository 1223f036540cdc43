"""Encodes requests, and decodes replies with hiredis. For replies with their wire types see `disqued.resp.replies`.

Text is UTF-8 with surrogate escapes in both directions, so a queue name of any bytes can be a `str`. Bodies stay bytes.
The client uses RESP version 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import hiredis

from disqued.client.errors import ResponseError, response_error
from disqued.resp.writer import request

Argument: TypeAlias = str | bytes | int
"""One word of a command."""

Reply: TypeAlias = "bytes | int | list[Reply] | ResponseError | None"
"""A raw reply: errors are values, null is None, simple and bulk strings are both bytes."""

_INCOMPLETE: Final = object()


class MalformedReplyError(ConnectionError):
    """The server does not speak RESP; the connection cannot be used any more."""


def to_bytes(argument: Argument) -> bytes:
    """Return the bytes of one word of a command."""
    match argument:
        case bytes():
            return argument
        case int():
            return b"%d" % argument
        case _:
            return argument.encode("utf-8", "surrogateescape")


def to_text(raw: bytes) -> str:
    """Decode a name; the reverse of `to_bytes`."""
    return raw.decode("utf-8", "surrogateescape")


def encode(arguments: Sequence[Argument]) -> bytes:
    """Encode one request."""
    return request([argument if isinstance(argument, bytes) else to_bytes(argument) for argument in arguments])


def option_words(**values: Argument | None) -> tuple[Argument, ...]:
    """Return options with a value, in the order given; options that are None are omitted."""
    return tuple(word for name, value in values.items() if value is not None for word in (name, value))


def flag_words(**values: bool) -> tuple[Argument, ...]:
    """Return the options without a value that are set."""
    return tuple(name for name, value in values.items() if value)


class Decoder:
    """Turns a stream of bytes into complete replies, in order."""

    def __init__(self) -> None:
        self._reader = hiredis.Reader(
            protocolError=MalformedReplyError, replyError=response_error, notEnoughData=_INCOMPLETE
        )

    def feed(self, data: bytes) -> list[Reply]:
        """Return the replies that `data` completes.

        Raises:
            MalformedReplyError: the bytes are not RESP.
        """
        self._reader.feed(data)
        replies: list[Reply] = []
        while (reply := self._reader.gets()) is not _INCOMPLETE:
            replies.append(reply)
        return replies
