"""What the schedule room counts."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter

FIRED: Final = Counter("schedule_runs", "Runs of schedules that this node started and whose jobs were added.")
MISSED: Final = Counter(
    "schedule_runs_missed", "Times at which schedules were due and that passed without a run, found by this node."
)
REFUSED: Final = Counter(
    "schedule_runs_refused", "Runs of schedules that this node did not start because another node had started them."
)
COUNTERS: Final = (FIRED, MISSED, REFUSED)
