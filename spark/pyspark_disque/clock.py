"""A clock that tests can replace, and the deadline of the option `giveUpAfter` for retries."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

RETRY_PAUSE_S: Final = 0.25
"""The pause between two attempts at an operation that may succeed later."""


@dataclass(frozen=True, slots=True)
class Clock:
    """A monotonic time in seconds, and a function that sleeps."""

    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class RetryDeadline:
    """Limits how long an operation may fail in a row. The time counts from the first failure after a success."""

    def __init__(self, give_up_after_s: float, clock: Clock) -> None:
        self._give_up_after_s = give_up_after_s
        self._clock = clock
        self._since_s: float | None = None

    def reset(self) -> None:
        """Note a success: the time counts again from the next failure."""
        self._since_s = None

    def note_failure(self) -> bool:
        """Note a failure, and return whether the deadline has passed."""
        now_s = self._clock.now_s()
        if self._since_s is None:
            self._since_s = now_s
        return now_s - self._since_s >= self._give_up_after_s

    def retry_or_raise(self, error: Exception) -> None:
        """Note a failure: sleep before the next attempt, or raise `error` if the deadline has passed."""
        if self.note_failure():
            raise error
        self._clock.sleep(RETRY_PAUSE_S)
