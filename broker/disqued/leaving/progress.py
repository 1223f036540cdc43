"""The progress of a drain: counts, rate, the time that is left, and what the node waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.telemetry.rate import Rate

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields

LOG_EVERY_MS: Final = 5000
UNKNOWN: Final = -1
"""The estimate while no job moves."""


class Progress:
    """Counters of one drain. A job is counted once, when this node drops it."""

    def __init__(self, now_ms: i64) -> None:
        self.began_ms: i64 = now_ms
        self.transferred: i64 = 0
        """Jobs that other nodes took."""
        self.short_of_copies: i64 = 0
        """Those among them that now have fewer holders than they asked for."""
        self.dropped: i64 = 0
        """Jobs that no other node needs: delivered at-most-once jobs, and acknowledgements that all nodes know."""
        self.without_target: i64 = 0
        """Jobs for which the last pass over the table found no node."""
        self.waits_for: str = ""
        """Why jobs stay; empty if there is no problem."""
        self._rate = Rate()
        self._next_log_ms: i64 = now_ms + LOG_EVERY_MS
        self._logged_done: bool = False

    def sample(self, now_ms: i64) -> None:
        """Note how many jobs have left the node. Called every 100 ms."""
        self._rate.sample(self.transferred + self.dropped, now_ms)

    def rate(self) -> int:
        """Jobs per second over the last one and a half seconds."""
        return int(self._rate.per_second())

    def estimate_s(self, left: i64) -> int:
        """Seconds until no job is left at the current rate; UNKNOWN while no job moves."""
        rate = self.rate()
        if left == 0:
            return 0
        return UNKNOWN if rate == 0 else (int(left) + rate - 1) // rate

    def log(self, state: NodeState) -> None:
        """Log the progress every five seconds, and once that nothing is left."""
        left = jobs_left(state)
        needed = state.events.still_needed() if left == 0 and not self._logged_done else ""
        if left > 0 or needed:
            self._logged_done = False
            if state.now_ms >= self._next_log_ms:
                self._next_log_ms = state.now_ms + LOG_EVERY_MS
                why = f"; {self.waits_for or needed}" if self.waits_for or needed else ""
                state.host.log(
                    "notice",
                    f"Leaving: jobs_left={left} transferred={self.transferred} jobs_per_second={self.rate()}{why}",
                )
        elif not self._logged_done:
            self._logged_done = True
            took_s = float(state.now_ms - self.began_ms) / 1000.0
            state.host.log(
                "notice",
                f"Leaving: no jobs are left, this node can be stopped: seconds={took_s:.1f} "
                f"transferred={self.transferred} short_of_copies={self.short_of_copies}",
            )


def jobs_left(state: NodeState) -> int:
    """Jobs that must still leave the node, without those of clients in ADDJOB, which other nodes will keep."""
    return int(max(state.lifecycle.table.count - state.lifecycle.unplaced_jobs, 0))


def fields(state: NodeState, progress: Progress | None, in_flight: int) -> Fields:
    """The reply to CLUSTER LEAVING STATUS; `progress` is None on a node that does not leave."""
    if progress is None:
        return [("leaving", "no")]
    left = jobs_left(state)
    needed = state.events.still_needed() if left == 0 else ""
    return [
        ("leaving", "yes"),
        ("done", "yes" if left == 0 and not needed else "no"),
        ("jobs-left", left),
        ("jobs-in-flight", in_flight),
        ("jobs-waiting-for-copies", int(state.lifecycle.unplaced_jobs)),
        ("jobs-transferred", int(progress.transferred)),
        ("jobs-short-of-copies", int(progress.short_of_copies)),
        ("jobs-dropped", int(progress.dropped)),
        ("jobs-held", int(progress.without_target)),
        ("rate", progress.rate()),
        ("seconds-left", progress.estimate_s(left)),
        ("seconds-elapsed", int(state.now_ms - progress.began_ms) // 1000),
        ("waits-for", progress.waits_for or needed),
    ]
