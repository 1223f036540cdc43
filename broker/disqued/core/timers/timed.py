"""The base of everything that the timer wheel holds: jobs, alarms and waiting clients.

It has the links of the timer wheel, so arming allocates nothing.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

DUE: Final = -1
"""The wake time of an item that `TimerWheel.due` returned and that was not woken yet."""


@mypyc_attr(acyclic=True)
class Timed:
    """An item with a wake time."""

    def __init__(self) -> None:
        self.awake_ms: i64 = 0
        """When to wake it, in unix milliseconds; 0 for never, DUE for now."""
        self.timer_previous: Timed | None = None
        self.timer_next: Timed | None = None
