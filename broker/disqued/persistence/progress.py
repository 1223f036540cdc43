"""How far the loading of the append-only file is: for the log, INFO, the health probes and the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields

LOG_EVERY_MS: Final = 3000
"""How often the progress is logged."""


class Progress:
    """The progress of one load."""

    def __init__(self, state: NodeState, name: str, total_bytes: i64) -> None:
        self._state = state
        self._name = name
        self._began_ms: i64 = state.now_ms
        self._began_s: int = state.host.wall_us() // 1_000_000
        self._logged_ms: i64 = state.now_ms
        self.total_bytes: i64 = total_bytes
        self.loaded_bytes: i64 = 0
        self.jobs: i64 = 0
        """The number of jobs that are in memory now."""
        self.expired: i64 = 0
        """The number of jobs that were left out because they had expired."""

    def line(self) -> str:
        """The progress in one line."""
        return f"Loading {self._name}: {self._percent():.0f} %, {self.jobs} jobs, about {self._left_s()} s left"

    def log_if_due(self) -> None:
        """Log the progress every few seconds."""
        state = self._state
        if state.now_ms - self._logged_ms >= LOG_EVERY_MS:
            self._logged_ms = state.now_ms
            state.host.log("notice", self.line())

    def log_end(self) -> None:
        """Log what was loaded."""
        state = self._state
        seconds = float(state.now_ms - self._began_ms) / 1000
        text = f"DB loaded from append only file: {seconds:.3f} seconds, {self.jobs} jobs, {self.loaded_bytes} bytes"
        if self.expired > 0:
            text += f"; {self.expired} jobs left out, whose time is over"
        state.host.log("notice", text)

    def fields(self) -> Fields:
        """The progress, for INFO."""
        return [
            ("loading_start_time", self._began_s),
            ("loading_total_bytes", int(self.total_bytes)),
            ("loading_loaded_bytes", int(self.loaded_bytes)),
            ("loading_loaded_perc", f"{self._percent():.2f}"),
            ("loading_eta_seconds", self._left_s()),
        ]

    def _percent(self) -> float:
        return float(self.loaded_bytes) * 100 / float(max(self.total_bytes, 1))

    def _left_s(self) -> int:
        """The estimated time left in seconds; 1 while it is unknown."""
        elapsed_s: i64 = (self._state.now_ms - self._began_ms) // 1000
        if elapsed_s == 0 or self.loaded_bytes == 0:
            return 1
        return int(elapsed_s * (self.total_bytes - self.loaded_bytes) // self.loaded_bytes)
