"""Rates of counters over the last few seconds.

They are calculated for each member before they are added up: a sum of counters would jump when a member does not
answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

SAMPLES: Final = 6
"""A rate is the average between the first and the last of so many samples."""


class Rates:
    """The last samples of named counters; each sample has a tuple of counters for each name."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, Mapping[bytes, tuple[int, ...]]]] = deque(maxlen=SAMPLES)

    def add(self, now_s: float, counters: Mapping[bytes, tuple[int, ...]]) -> None:
        """Add a sample."""
        self._samples.append((now_s, counters))

    def per_second(self, name: bytes) -> tuple[float, ...] | None:
        """The rates of the counters of a name; None if there are fewer than two samples of it."""
        known = [(at_s, counters[name]) for at_s, counters in self._samples if name in counters]
        if len(known) < 2:
            return None
        (first_s, first), (last_s, last) = known[0], known[-1]
        if last_s <= first_s:
            return None
        return tuple(max(0.0, (end - begin) / (last_s - first_s)) for begin, end in zip(first, last, strict=True))
