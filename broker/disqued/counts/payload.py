"""The payloads of COUNTASK and COUNTED.

COUNTASK: the number of the question (4 bytes), what is asked (1), a version (8), the name of the queue. COUNTED: the
number of the question (4), then each figure in 8 bytes, in the order of `counts.counting.FIGURES`. A later release may
send more figures; a node adds those that it knows.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

JOBS: Final = 1
"""How many jobs of the queue are on the node, by phase."""
PURGED: Final = 2
"""How many jobs of the queue a purge deleted on the node; the version is that of its mark (`settings.entries`)."""
MOST_FIGURES: Final = 64
"""A COUNTED with more is malformed."""
MOST_JOBS: Final = 1 << 40
"""So has one with a greater figure: no node has so many jobs, and the sum must be an integer of the protocol."""
_QUESTIONS: Final = frozenset((JOBS, PURGED))
_HEAD: Final = struct.Struct(">IBQ")
_NUMBER: Final = struct.Struct(">I")
_FIGURE_BYTES: Final = 8


class MalformedError(Exception):
    """The payload is not that of a COUNTASK or COUNTED; the text says why."""


class Question(NamedTuple):
    """What one node asks the others."""

    number: int
    what: int
    """JOBS or PURGED."""
    version: int
    """0 for JOBS."""
    queue: bytes


def pack_question(question: Question) -> bytes:
    """The payload of a COUNTASK."""
    return _HEAD.pack(question.number, question.what, question.version) + question.queue


def unpack_question(payload: bytes) -> Question:
    """The question in a payload. Raises MalformedError; a question of an unknown kind is none."""
    if len(payload) <= _HEAD.size:
        raise MalformedError(f"a question of {len(payload)} bytes")
    number, what, version = _HEAD.unpack_from(payload)
    if what not in _QUESTIONS:
        raise MalformedError(f"a question of the unknown kind {what}")
    return Question(number, what, version, payload[_HEAD.size :])


def pack_answer(number: int, figures: Sequence[int]) -> bytes:
    """The payload of a COUNTED."""
    return _NUMBER.pack(number) + struct.pack(f">{len(figures)}Q", *figures)


def unpack_answer(payload: bytes) -> tuple[int, list[int]]:
    """The number of the question and the figures. Raises MalformedError."""
    size = len(payload) - _NUMBER.size
    if size <= 0 or size % _FIGURE_BYTES or size > MOST_FIGURES * _FIGURE_BYTES:
        raise MalformedError(f"an answer of {len(payload)} bytes")
    figures = list(struct.unpack_from(f">{size // _FIGURE_BYTES}Q", payload, _NUMBER.size))
    if max(figures) > MOST_JOBS:
        raise MalformedError(f"a figure of {max(figures)}")
    return _NUMBER.unpack_from(payload)[0], figures
