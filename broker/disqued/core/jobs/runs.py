"""A run of a schedule: the time at which it was due, and the ID of its job, which every node derives alike."""

from __future__ import annotations

from binascii import b2a_base64
from hashlib import blake2b
from typing import Final

from mypy_extensions import i64

_DIGEST_BYTES: Final = 18
_DUE: Final = b"disque-schedule"
_BY_HAND: Final = b"disque-run"
"""Runs that a client starts (SCHEDULE RUN) have other IDs than those that were due at the same time."""


class RunOf:
    """One run of a schedule; `due_ms` in unix milliseconds. By hand: a client started it at that time."""

    def __init__(self, name: bytes, due_ms: i64, *, by_hand: bool = False, all_copies: bool = True) -> None:
        self.name = name
        self.due_ms: i64 = due_ms
        self.by_hand: bool = by_hand
        self.all_copies: bool = all_copies
        """The job waits until all nodes that can be reached have their copies; otherwise one copy is enough."""

    def characters(self) -> bytes:
        """The 24 characters in the middle of the ID of its job."""
        words = len(self.name).to_bytes(8, "big") + self.name + int(self.due_ms).to_bytes(8, "big")
        person = _BY_HAND if self.by_hand else _DUE
        return b2a_base64(blake2b(words, digest_size=_DIGEST_BYTES, person=person).digest(), newline=False)
