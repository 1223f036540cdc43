"""How far a leaving node is: what it counts, how fast it is, how long it will take, and what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.telemetry.rate import Rate

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields

LOG_EVERY_MS: Final = 5000
UNKNOWN: Final = -1
"""The estimate while nothing moves."""


class Progress:
    """Counters of one hand-off; jobs are counted once, when this node lets go of them."""

    def __init__(self, now_ms: i64) -> None:
        self.began_ms: i64 = now_ms
        self.handed_over: i64 = 0
        """Jobs that other nodes took."""
        self.short_of_copies: i64 = 0
        """Those among them that fewer nodes have than they asked for."""
        self.let_go: i64 = 0
        """Jobs that were only dropped: at-most-once jobs that were delivered, acknowledgements that all others know."""
        self.held: i64 = 0
        """Jobs that the last pass found nobody for."""
        self.waits_for: str = ""
        """Why jobs stay; empty while all is well."""
        self._rate = Rate()
        self._next_log_ms: i64 = now_ms + LOG_EVERY_MS
        self._told_done: bool = False

    def sample(self, now_ms: i64) -> None:
        """Note how far the node is; called every 100 ms."""
        self._rate.sample(self.handed_over + self.let_go, now_ms)

    def rate(self) -> int:
        """Jobs per second over the last one and a half seconds."""
        return int(self._rate.per_second())

    def estimate_s(self, left: i64) -> int:
        """Seconds until no job is left at the present rate; UNKNOWN while nothing moves."""
        rate = self.rate()
        if left == 0:
            return 0
        return UNKNOWN if rate == 0 else (int(left) + rate - 1) // rate

    def tell(self, state: NodeState) -> None:
        """Log how far the node is every five seconds, and the end once."""
        left = jobs_left(state)
        if left > 0:
            self._told_done = False
            if state.now_ms >= self._next_log_ms:
                self._next_log_ms = state.now_ms + LOG_EVERY_MS
                why = f"; {self.waits_for}" if self.waits_for else ""
                state.host.log(
                    "notice",
                    f"Leaving: {left} jobs left, {self.handed_over} handed over, {self.rate()} per second{why}",
                )
        elif not self._told_done:
            self._told_done = True
            took_s = float(state.now_ms - self.began_ms) / 1000.0
            state.host.log(
                "notice",
                f"Leaving: no jobs are left after {took_s:.1f} s, {self.handed_over} were handed over, "
                f"{self.short_of_copies} of them with fewer copies than asked for. This node can be stopped",
            )


def jobs_left(state: NodeState) -> int:
    """Jobs that are still to go; not those of clients in ADDJOB, which other nodes will keep."""
    return int(max(state.lifecycle.table.count - state.lifecycle.unplaced_jobs, 0))


def fields(state: NodeState, progress: Progress | None, in_flight: int) -> Fields:
    """The reply to CLUSTER LEAVING STATUS; of a node that stays, that it does."""
    if progress is None:
        return [("leaving", "no")]
    left = jobs_left(state)
    return [
        ("leaving", "yes"),
        ("done", "yes" if left == 0 else "no"),
        ("jobs-left", left),
        ("jobs-in-flight", in_flight),
        ("jobs-waiting-for-copies", int(state.lifecycle.unplaced_jobs)),
        ("jobs-handed-over", int(progress.handed_over)),
        ("jobs-short-of-copies", int(progress.short_of_copies)),
        ("jobs-let-go", int(progress.let_go)),
        ("jobs-held", int(progress.held)),
        ("rate", progress.rate()),
        ("seconds-left", progress.estimate_s(left)),
        ("seconds-elapsed", int(state.now_ms - progress.began_ms) // 1000),
        ("waits-for", progress.waits_for),
    ]
