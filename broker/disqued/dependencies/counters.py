"""What the dependencies room counts."""

from __future__ import annotations

from typing import Final

from disqued.core.jobs.parents import ACTIONS
from disqued.core.telemetry.counter import Counter

FREED: Final = Counter("held_jobs_freed", "Jobs of this node that waited for others and whose parents are done.")
_OTHERWISE: Final = "Jobs that this node held and whose parents can no longer be done, by what became of them (ELSE)."
OTHERWISE: Final = tuple(
    Counter(
        f"held_jobs_{action.decode()}",
        _OTHERWISE,
        metric="disque_held_jobs_otherwise_total",
        labels=(("action", action.decode()),),
    )
    for action in ACTIONS
)
"""By action."""
COUNTERS: Final = (FREED, *OTHERWISE)
