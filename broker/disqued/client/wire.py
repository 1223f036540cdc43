"""Requests to bytes, bytes to replies: the only file that knows how RESP looks. hiredis does the parsing.

Text is UTF-8 with surrogate escapes in both directions, so that a queue name of any bytes survives the round trip as a
`str`. Bodies stay bytes. Limits: RESP version 2, which is all that these commands need.
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
"""An answer as it came: errors inside are values, null is None, status and bulk strings are both bytes."""

_INCOMPLETE: Final = object()


class MalformedReplyError(ConnectionError):
    """The other side does not speak RESP; the connection is of no further use."""


def to_bytes(argument: Argument) -> bytes:
    """One word as it travels."""
    match argument:
        case bytes():
            return argument
        case int():
            return b"%d" % argument
        case _:
            return argument.encode("utf-8", "surrogateescape")


def to_text(raw: bytes) -> str:
    """The reverse of `to_bytes` for names."""
    return raw.decode("utf-8", "surrogateescape")


def encode(arguments: Sequence[Argument]) -> bytes:
    """One request."""
    return request([to_bytes(argument) for argument in arguments])


class Decoder:
    """Collects bytes and hands out whole replies, in order."""

    def __init__(self) -> None:
        self._reader = hiredis.Reader(
            protocolError=MalformedReplyError, replyError=response_error, notEnoughData=_INCOMPLETE
        )

    def feed(self, data: bytes) -> list[Reply]:
        """The replies that `data` completes.

        Raises:
            MalformedReplyError: the bytes are not RESP.
        """
        self._reader.feed(data)
        replies: list[Reply] = []
        while (reply := self._reader.gets()) is not _INCOMPLETE:
            replies.append(reply)
        return replies
