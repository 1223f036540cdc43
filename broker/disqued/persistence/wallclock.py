"""The wall clock beside the node's time, for the times on disk.

The node's time is the wall clock at its start plus the monotonic time since then, so that no timer moves when the wall
clock is set. A node that started with a clock that was behind (a machine that boots before its time is synchronised)
would write expiry times that are over when it starts again with the right clock, and its jobs would be gone. So the
times in the append-only file follow the wall clock when that is set forward, and the file is rewritten after a large
step, because the records before it have the old times.

Times on disk never follow a clock that is set back: nobody can tell a correction from a mistake, and a time that is too
late makes a job live longer, while one that is too early loses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields

STEP_MS: Final = 60_000
"""A larger change of the wall clock is logged and counted, and if it is forward the file is rewritten."""
_NOISE_MS: Final = 1000
"""Smaller differences are within the resolution of the times on disk."""


class WallClock:
    """Follows the wall clock of one node."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self.offset_ms: i64 = 0
        """How far the wall clock is ahead of the node's time; negative if it is behind."""
        self.steps: i64 = 0
        """How often the wall clock was set by a minute or more."""
        self._stepped_ms: i64 = 0
        """The offset after the last large change."""

    def follow(self) -> bool:
        """Compare the clocks. Returns whether the times in the file are now too early for jobs that it has."""
        state = self._state
        offset_ms: i64 = state.host.wall_us() // 1000 - state.now_ms
        if -_NOISE_MS < offset_ms - self.offset_ms < _NOISE_MS:
            return False
        self.offset_ms = offset_ms
        ahead_s: i64 = (offset_ms + _NOISE_MS // 2) // 1000 if offset_ms > 0 else 0
        state.wall_ahead_s = ahead_s
        step_ms: i64 = offset_ms - self._stepped_ms
        if -STEP_MS < step_ms < STEP_MS:
            return False
        self._stepped_ms = offset_ms
        self.steps += 1
        way = "forward" if step_ms > 0 else "back"
        state.host.log(
            "warning",
            f"The wall clock was set {way} since this node last compared it with its own time: "
            f"step_ms={abs(int(step_ms))} ahead_of_node_ms={int(offset_ms)}. "
            "No timer of this node moves. Check NTP, and restart the node when the clock is right.",
        )
        return step_ms > 0 and ahead_s > 0

    def fields(self) -> Fields:
        """The difference and the number of steps, for INFO."""
        return [("clock_offset_ms", int(self.offset_ms)), ("clock_steps", int(self.steps))]
