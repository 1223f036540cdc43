"""The payloads of TOKENASK and TOKENS; in both the name of the queue is behind the numbers.

TOKENASK: when the sender asks, on its clock and greater than before (8 bytes), the number of the last grant that it
has counted (4), how many deliveries it could make in addition (4), how many tokens it has (4), how many it gives back
(4), how many jobs in flight it delivered (4), in how many milliseconds the last of them is queued again or expires (4),
for how many milliseconds its part of the limits has belonged to the receiver alone, all bits set if it does not (4),
and the newest stamp of the receiver, from which on it gives that part again, 0 if there was none (8).

TOKENS: the time in the newest TOKENASK, 0 if there was none (8), a stamp: when it is sent, on the clock of the sender
(8), the number of this grant (4), how many tokens (4), why there are not more (1), whether the receiver must report
(1).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from disqued.core.queues.limiter import REASONS
from disqued.core.queues.settings import MOST_NAME_BYTES

MOST: Final = (1 << 32) - 1
NOT_GIVEN: Final = MOST
"""The part of a node does not belong to the receiver."""
_ASK: Final = struct.Struct(">qIIIIIIIq")
_TOKENS: Final = struct.Struct(">qqIIBB")


class MalformedError(Exception):
    """The payload is not that of a TOKENASK or TOKENS; the text says why."""


class Ask(NamedTuple):
    """What a node says about its deliveries of a queue, and what it needs."""

    queue: bytes
    asked_ms: int
    answered: int
    wanted: int
    unused: int
    returned: int
    in_flight: int
    in_flight_ms: int
    given_ms: int
    stamp_ms: int


class Told(NamedTuple):
    """What the rate home of a queue grants."""

    queue: bytes
    asked_ms: int
    stamp_ms: int
    number: int
    tokens: int
    why: int
    report: bool


def _name(payload: bytes, at: int) -> bytes:
    if not at < len(payload) <= at + MOST_NAME_BYTES:
        raise MalformedError(f"a payload of {len(payload)} bytes")
    return payload[at:]


def pack_ask(ask: Ask) -> bytes:
    """The payload of a TOKENASK. Numbers that do not fit become the greatest that does."""
    numbers = [min(number, MOST) for number in ask[2:-1]]
    return _ASK.pack(ask.asked_ms, *numbers, ask.stamp_ms) + ask.queue


def unpack_ask(payload: bytes) -> Ask:
    """The question in a payload. Raises MalformedError."""
    queue = _name(payload, _ASK.size)
    return Ask(queue, *_ASK.unpack_from(payload))


def pack_told(told: Told) -> bytes:
    """The payload of a TOKENS."""
    return _TOKENS.pack(told.asked_ms, told.stamp_ms, told.number, told.tokens, told.why, int(told.report)) + told.queue


def unpack_told(payload: bytes) -> Told:
    """The answer in a payload. Raises MalformedError."""
    queue = _name(payload, _TOKENS.size)
    asked_ms, stamp_ms, number, tokens, why, report = _TOKENS.unpack_from(payload)
    if why >= len(REASONS) or report > 1:
        raise MalformedError(f"the reason {why} with the mark {report}")
    return Told(queue, asked_ms, stamp_ms, number, tokens, why, bool(report))
