"""Rates: how fast a counter grows."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

SAMPLES: Final = 16
"""Instantaneous rates are the mean of this many samples, one per 100 ms."""


class Rate:
    """Events per second over the last samples of a growing counter."""

    def __init__(self) -> None:
        self._last_count: i64 = 0
        self._last_ms: i64 = 0
        self._samples: list[float] = [0.0] * SAMPLES
        self._at: i64 = 0

    def sample(self, count: i64, now_ms: i64) -> None:
        """Note the counter's value; a value below the last one means it was reset."""
        elapsed_ms = now_ms - self._last_ms
        if elapsed_ms > 0 and self._last_ms > 0:
            self._samples[self._at] = float(max(count - self._last_count, 0)) * 1000.0 / float(elapsed_ms)
            self._at = (self._at + 1) % SAMPLES
        self._last_count = count
        self._last_ms = now_ms

    def per_second(self) -> float:
        """The mean rate."""
        return sum(self._samples) / SAMPLES
