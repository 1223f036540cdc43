"""The results of commands, as the node that proposed them gets them.

The code of the machine (1 byte), the value (8); for an ADD of a known key the time to live and the retry time of the
earlier job, whose index is the value (8, 8); for a PURGE that is not complete, where to continue (8); whether the value
is the index of an earlier job (1).
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64

from disqued.orderedqueue.effects import MALFORMED, Effects

_RESULT: Final = struct.Struct(">BqqqqB")


class Result:
    """What came of a command."""

    def __init__(self, code: i64, value: i64) -> None:
        self.code: i64 = code
        self.value: i64 = value
        self.known: bool = False
        """Whether `value` is the index of an earlier job with the same key."""
        self.ttl_s: i64 = 0
        self.retry_s: i64 = 0
        """Of that job."""
        self.next_index: i64 = 0
        """Where a PURGE continues; 0 if it is complete."""


def pack(effects: Effects) -> bytes:
    """The result in the effects of an entry."""
    known = effects.known
    if known is not None:
        return _RESULT.pack(effects.code, known.index, known.ttl_s, known.retry_s, effects.next_index, 1)
    return _RESULT.pack(effects.code, effects.value, 0, 0, effects.next_index, 0)


def unpack(data: bytes) -> Result:
    """The result in an answer; MALFORMED if it is none."""
    if len(data) != _RESULT.size:
        return Result(MALFORMED, 0)
    code, value, ttl_s, retry_s, next_index, known = _RESULT.unpack(data)
    result = Result(code, value)
    result.known = known != 0
    result.ttl_s = ttl_s
    result.retry_s = retry_s
    result.next_index = next_index
    return result
