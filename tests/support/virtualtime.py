"""An event loop in virtual time, which advances when all tasks wait: hours take milliseconds, deterministically."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _NoWaiting(selectors.DefaultSelector):
    """A selector that returns at once and advances the clock by the timeout."""

    skipped_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "all tasks wait forever"
            self.skipped_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose `time` starts at 1000 and advances by the timeouts."""

    def __init__(self) -> None:
        self._no_waiting = _NoWaiting()
        super().__init__(self._no_waiting)

    def time(self) -> float:
        return 1000.0 + self._no_waiting.skipped_s


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time, like `asyncio.run`."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def now_s() -> float:
    """Return the time of the running loop."""
    return asyncio.get_running_loop().time()
