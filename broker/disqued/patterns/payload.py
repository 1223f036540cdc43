"""The payload of PATTERNS: each pattern as its length in two bytes, then its bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.core.queues.patterns import MOST_BYTES, MOST_LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable


class MalformedError(Exception):
    """The payload is not that of a PATTERNS."""


def pack(texts: Iterable[bytes]) -> bytes:
    """The payload with these patterns."""
    return b"".join([len(text).to_bytes(2, "big") + text for text in texts])


def unpack(payload: bytes) -> list[bytes]:
    """The patterns in a payload.

    Raises:
        MalformedError: a length is wrong, or there are too many.
    """
    texts: list[bytes] = []
    at = 0
    while at < len(payload):
        length = int.from_bytes(payload[at : at + 2], "big")
        end = at + 2 + length
        if end > len(payload) or length > MOST_BYTES or len(texts) == MOST_LOCAL:
            raise MalformedError(f"{len(texts)} patterns, then {len(payload) - at} bytes")
        texts.append(payload[at + 2 : end])
        at = end
    return texts
