"""A user of one node: its rules, and what its sessions use of them."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.access.catalogue import Catalogue
from disqued.core.access.rules import Rules

_WHOLE: i64 = 1000
"""A command, in the thousandths in which the limit of commands per second is counted."""


class User:
    """One user. Sessions refer to it, so changed rules apply to them at once."""

    def __init__(self, name: bytes, rules: Rules, catalogue: Catalogue) -> None:
        self.name = name
        self.rules = rules
        self.unrestricted: bool = rules.allows_everything(catalogue)
        """Whether no request of this user needs a check."""
        self.removed: bool = False
        self.connections: i64 = 0
        """How many sessions are logged in."""
        self._left: i64 = 0
        """How much of the limit per second is left, in thousandths of a command."""
        self._refilled_ms: i64 = 0

    def follow(self, rules: Rules, catalogue: Catalogue) -> None:
        """Follow other rules from now on."""
        self.rules = rules
        self.unrestricted = rules.allows_everything(catalogue)

    def may_send(self, now_ms: i64) -> bool:
        """Whether one more command is within the limit per second; if so, it is counted."""
        rate = self.rules.rate
        if rate == 0:
            return True
        if now_ms > self._refilled_ms:
            elapsed_ms = min(now_ms - self._refilled_ms, 1000)
            self._left = min(self._left + elapsed_ms * rate, rate * 1000)
            self._refilled_ms = now_ms
        if self._left < _WHOLE:
            return False
        self._left -= _WHOLE
        return True
