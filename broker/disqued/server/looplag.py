"""The lag of the event loop: a timer measures every 100 ms how late it runs."""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle
from time import monotonic_ns
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from disqued.core.telemetry.histogram import Histogram

EVERY_S: Final = 0.1
_EVERY_NS: Final = 100_000_000


class LoopLag:
    """Measures the lag of an event loop."""

    def __init__(self, loop: AbstractEventLoop, lags: Histogram) -> None:
        self._loop = loop
        self._lags = lags
        self._timer: TimerHandle | None = None
        self._due_ns = 0

    def start(self) -> None:
        """Start to measure."""
        self._due_ns = monotonic_ns() + _EVERY_NS
        self._timer = self._loop.call_later(EVERY_S, self._ring)

    def _ring(self) -> None:
        self._lags.observe(max(monotonic_ns() - self._due_ns, 0))
        self.start()

    def stop(self) -> None:
        """Stop measuring."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
