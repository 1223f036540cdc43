"""A histogram of integers: the number of values up to each of a few fixed bounds, and their sum.

It is updated on the hot path. A value of the first bucket, as most are, costs two additions of machine integers.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

PER_MS: Final = 1_000
PER_NS: Final = 1_000_000_000
"""How many of the measured units make a second."""
WAITS_MS: Final[tuple[int, ...]] = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)
"""Bounds for durations from a millisecond to some seconds."""


class Histogram:
    """Values by size. The increasing bounds are in the measured unit, of which `per_second` make a second."""

    def __init__(self, bounds: tuple[int, ...], per_second: int) -> None:
        self.bounds = bounds
        self.per_second = per_second
        self.sum: i64 = 0
        self._bound: i64 = bounds[0]
        self._small: i64 = 0
        """The number of values up to the first bound."""
        self._large: list[int] = [0] * len(bounds)
        """The number of values up to each further bound, and beyond the last one."""

    def observe(self, value: i64) -> None:
        """Add a value."""
        self.sum += value
        if value <= self._bound:
            self._small += 1
            return
        bounds = self.bounds
        at: i64 = 1
        count: i64 = len(bounds)
        while at < count and value > bounds[at]:
            at += 1
        self._large[at - 1] += 1

    def counts(self) -> list[int]:
        """The number of values in each bucket; the last bucket has no upper bound."""
        return [int(self._small), *self._large]

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self.counts())

    def reset(self) -> None:
        """Set all counts to zero."""
        self.sum = 0
        self._small = 0
        self._large = [0] * len(self.bounds)
