"""Something with a wake time: the base of jobs, alarms and waiting clients.

It carries its own links of the timer wheel, so that arming allocates nothing.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

DUE: Final = -1
"""Stands for the wake time of what is about to be woken."""


@mypyc_attr(acyclic=True)
class Timed:
    """Something with a wake time: what the timer wheel holds."""

    def __init__(self) -> None:
        self.awake_ms: i64 = 0
        """When to wake up, in unix milliseconds; 0 for never, DUE for now."""
        self.timer_previous: Timed | None = None
        self.timer_next: Timed | None = None
