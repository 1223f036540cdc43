"""How long to wait before the next attempt: doubling, bounded, and spread by chance.

The chance matters most: without it all clients of a node that restarts would knock at the same instants.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """`attempts` tries; between them waits that double from `first_s` up to `longest_s`.

    Each wait is drawn between half of its nominal length and all of it. `Backoff(attempts=1)` fails at once.
    """

    first_s: float = 0.05
    longest_s: float = 5.0
    attempts: int = 8

    def __post_init__(self) -> None:
        if self.attempts < 1 or not 0 <= self.first_s <= self.longest_s:
            raise ValueError(f"a back-off needs attempts >= 1 and 0 <= first_s <= longest_s, got {self}")

    def waits_s(self, rng: random.Random) -> Iterator[float]:
        """The seconds to wait after each failed attempt but the last."""
        for failures in range(self.attempts - 1):
            yield self.wait_s(failures, rng)

    def wait_s(self, failures: int, rng: random.Random) -> float:
        """The wait after the first failure (0), the second (1), and so on without end."""
        nominal_s = min(self.longest_s, self.first_s * 2.0 ** min(failures, 60))
        return nominal_s * rng.uniform(0.5, 1.0)
