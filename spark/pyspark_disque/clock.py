"""Time as an argument, and the patience of the option `giveUpAfter`: how long to try again what may go right later."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

TRY_AGAIN_S: Final = 0.25
"""The pause between two attempts at what is away, or full."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds of a clock that never goes back, and a way to let some pass."""

    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class Patience:
    """How long something may fail in a row before it counts as failed."""

    def __init__(self, give_up_after_s: float, clock: Clock) -> None:
        self._give_up_after_s = give_up_after_s
        self._clock = clock
        self._since_s: float | None = None

    def succeeded(self) -> None:
        """From now on it did not fail."""
        self._since_s = None

    def is_over(self) -> bool:
        """Note a failure; whether there were only failures for so long that it is time to give up."""
        now_s = self._clock.now_s()
        if self._since_s is None:
            self._since_s = now_s
        return now_s - self._since_s >= self._give_up_after_s

    def bear(self, error: Exception) -> None:
        """Note a failure and wait a little, or raise it when it is time to give up."""
        if self.is_over():
            raise error
        self._clock.sleep(TRY_AGAIN_S)
