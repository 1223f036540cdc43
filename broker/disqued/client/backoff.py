"""Exponential back-off with jitter: how long to wait before the next attempt.

Without the jitter, all clients of a restarted node would reconnect at the same moments.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Up to `attempts` attempts, with waits between them that double from `first_s` up to `longest_s`.

    Each wait is random, between half of its nominal length and all of it. `Backoff(attempts=1)` fails at once.
    """

    first_s: float = 0.05
    longest_s: float = 5.0
    attempts: int = 8

    def __post_init__(self) -> None:
        if self.attempts < 1 or not 0 <= self.first_s <= self.longest_s:
            raise ValueError(f"a back-off needs attempts >= 1 and 0 <= first_s <= longest_s, got {self}")

    def waits_s(self, rng: random.Random) -> Iterator[float]:
        """Yield the seconds to wait after each failed attempt except the last."""
        for failures in range(self.attempts - 1):
            yield self.wait_s(failures, rng)

    def wait_s(self, failures: int, rng: random.Random) -> float:
        """Return the wait after `failures` + 1 failed attempts in a row, without a limit on attempts."""
        nominal_s = min(self.longest_s, self.first_s * 2.0 ** min(failures, 60))
        return nominal_s * rng.uniform(0.5, 1.0)
