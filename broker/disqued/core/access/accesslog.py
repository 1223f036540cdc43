"""ACL LOG: the latest refusals, equal ones counted together."""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64

AUTH: Final = b"auth"
COMMAND: Final = b"command"
QUEUE: Final = b"key"
"""Redis' word, which its tools know."""
RATE: Final = b"rate"
_TOGETHER_MS: Final = 60_000
"""Refusals that differ only in their time are counted together for this long."""
_SEARCHED: Final = 10
_SHOWN_BYTES: Final = 128


class Refusal:
    """One entry: a request or login that was refused, once or several times."""

    def __init__(self, number: i64, reason: bytes, what: bytes, user: bytes, client: bytes, now_ms: i64) -> None:
        self.number = number
        self.reason = reason
        self.what = what
        """The command, the queue, or the command of the failed login."""
        self.user = user
        self.client = client
        """The address of the client that was refused last."""
        self.count: i64 = 1
        self.first_ms = now_ms
        self.last_ms = now_ms


class AccessLog:
    """The refusals of one node, the latest first."""

    def __init__(self) -> None:
        self.entries: deque[Refusal] = deque()
        self._next: i64 = 0

    def add(self, reason: bytes, what: bytes, user: bytes, client: bytes, now_ms: i64, most: int) -> None:
        """Note a refusal and keep at most `most` entries."""
        what, user = what[:_SHOWN_BYTES], user[:_SHOWN_BYTES]
        for index in range(min(len(self.entries), _SEARCHED)):
            entry = self.entries[index]
            if (entry.reason, entry.what, entry.user) == (
                reason,
                what,
                user,
            ) and now_ms - entry.first_ms < _TOGETHER_MS:
                entry.count += 1
                entry.last_ms = now_ms
                entry.client = client
                return
        self.entries.appendleft(Refusal(self._next, reason, what, user, client, now_ms))
        self._next += 1
        while len(self.entries) > most:
            self.entries.pop()
