"""The window of the jobs that a node has sent to others in addition to new ones, and that are not confirmed yet.

The window of bytes starts small. It grows while confirmations arrive fast and shrinks when they are slow, because pings
wait behind the jobs, and a node that answers late is considered down.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

OVERHEAD_BYTES: Final = 300
"""Approximate size of a REPLJOB without the body."""
MAX_JOBS: Final = 1000
MAX_PROBES: Final = 8
"""Jobs in flight while no node answers."""
LEAST_BYTES: Final = 64 << 10
FIRST_BYTES: Final = 256 << 10
MOST_BYTES: Final = 4 << 20
"""Bounds of the window of bytes. A job that is larger than the window is sent alone."""
FAST_MS: Final = 250
SLOW_MS: Final = 1000


class Window:
    """How much is in flight, and how much may be."""

    def __init__(self) -> None:
        self._bytes: i64 = 0
        self._most_bytes: i64 = FIRST_BYTES

    def has_room(self, jobs: i64, *, answering: bool) -> bool:
        """Whether another job may be sent beside this number; only a few may while no node is `answering`."""
        most: i64 = MAX_JOBS if answering else MAX_PROBES
        return jobs < most and self._bytes < self._most_bytes

    def add(self, size_bytes: i64) -> None:
        """Note that a job was sent."""
        self._bytes += size_bytes

    def remove(self, size_bytes: i64) -> None:
        """Note that nobody waits for the confirmation of a job any more."""
        self._bytes -= size_bytes

    def note_confirmed(self, size_bytes: i64, took_ms: i64) -> None:
        """Adapt the window to the time that a confirmation took."""
        if took_ms <= FAST_MS:
            self._most_bytes = min(self._most_bytes + size_bytes, MOST_BYTES)
        elif took_ms > SLOW_MS:
            self._most_bytes = max(self._most_bytes - size_bytes, LEAST_BYTES)
