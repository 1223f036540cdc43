"""The fate of a job as one node knows it: whether the job still waits for its end, or how it ended.

A question about a job is a question about its chain: a move ends a job, and its successor takes its place. A node
answers for the newest link that it knows, the one with the most moves, except that a link that is done wins over all.

Only DONE says that a worker acknowledged the job. A node that merely does not know the job any more says UNKNOWN.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from mypy_extensions import i64, mypyc_attr

UNKNOWN: Final = 0
WAITING: Final = 1
DONE: Final = 2
DEAD: Final = 3
MOVED: Final = 4
EXPIRED: Final = 5
DELETED: Final = 6
OUTCOMES: Final = (b"unknown", b"waiting", b"done", b"dead", b"moved", b"expired", b"deleted")
"""The names of outcomes, by number."""

MAX_RESULT_BYTES: Final = 64 << 10
MAX_CLAIM: Final = (1 << 63) - 1
_NO_RESULT: Final = 0xFFFFFFFF
_FIXED: Final = Struct("<BqqIHBI")
"""Outcome, time of the end, claim, moves, copies, whether a successor follows, and the length of the result."""
_FIXED_BYTES: Final = 28
_ID_BYTES: Final = 40
_MOST_MOVES: Final = (1 << 31) - 1
_MOST_COPIES: Final = 65535


class CorruptFate(Exception):
    """The bytes are not a valid fate; the text says why."""


@mypyc_attr(acyclic=True)
class Fate:
    """What one node knows about the end of a job. Nothing changes it."""

    def __init__(
        self,
        outcome: i64,
        ended_ms: i64 = 0,
        claim: i64 = 0,
        moves: i64 = 0,
        successor: bytes | None = None,
        result: bytes | None = None,
        copies: i64 = 0,
    ) -> None:
        self.outcome: i64 = outcome
        """UNKNOWN, WAITING, DONE, DEAD, MOVED, EXPIRED or DELETED. DEAD: there is a dead letter, `successor`, which
        may be redriven; without a successor the job was dropped. An acknowledged dead letter is DELETED."""
        self.ended_ms: i64 = ended_ms
        """When it ended, in unix milliseconds of the node that ended it; 0 if it did not end, or if that is unknown."""
        self.claim: i64 = claim
        """The greatest claim that is known for the job; 0 for none."""
        self.moves: i64 = moves
        """Which link of the chain this is about: 0 for the job that was added."""
        self.successor = successor
        self.result = result
        self.copies: i64 = copies
        """REPLICATE of the job while it, or its dead letter, waits."""

    @property
    def name(self) -> bytes:
        """The name of the outcome."""
        return OUTCOMES[self.outcome]

    def is_newer_than(self, other: Fate) -> bool:
        """Whether this says more about the chain than the other one does."""
        if (self.outcome == DONE) != (other.outcome == DONE):
            return self.outcome == DONE
        if (self.outcome == UNKNOWN) != (other.outcome == UNKNOWN):
            return other.outcome == UNKNOWN
        return self.moves > other.moves


NOTHING: Final = Fate(UNKNOWN)
"""The answer of a node that does not know the job."""


def pack_fate(fate: Fate) -> bytes:
    """The bytes of a fate, as they are sent and stored; integers are little endian."""
    result = fate.result
    successor = fate.successor
    fixed = _FIXED.pack(
        fate.outcome,
        fate.ended_ms,
        fate.claim,
        fate.moves,
        fate.copies,
        0 if successor is None else 1,
        _NO_RESULT if result is None else len(result),
    )
    return fixed + (successor or b"") + (result or b"")


def fate_bytes(data: bytes, at: i64) -> i64:
    """The size of the fate at offset `at`. Raises CorruptFate if it is cut off."""
    if at + _FIXED_BYTES > len(data):
        raise CorruptFate("a fate is cut off")
    has_successor: int = data[at + _FIXED_BYTES - 5]
    length = int.from_bytes(data[at + _FIXED_BYTES - 4 : at + _FIXED_BYTES], "little")
    size: i64 = _FIXED_BYTES + (_ID_BYTES if has_successor else 0) + (0 if length == _NO_RESULT else length)
    if at + size > len(data):
        raise CorruptFate("a fate is cut off")
    return size


def unpack_fate(data: bytes, at: i64) -> Fate:
    """The fate at offset `at`. Raises CorruptFate."""
    end: i64 = at + fate_bytes(data, at)
    outcome, ended_ms, claim, moves, copies, has_successor, length = _FIXED.unpack_from(data, at)
    if outcome > DELETED:
        raise CorruptFate(f"outcome {outcome} is not known")
    if ended_ms < 0 or claim < 0 or moves > _MOST_MOVES or has_successor > 1:
        raise CorruptFate("a number is out of range")
    if length != _NO_RESULT and length > MAX_RESULT_BYTES:
        raise CorruptFate(f"a result of {length} bytes")
    result = None if length == _NO_RESULT else data[end - length : end]
    at += _FIXED_BYTES
    successor = data[at : at + _ID_BYTES] if has_successor else None
    return Fate(outcome, ended_ms, claim, moves, successor, result, copies)
