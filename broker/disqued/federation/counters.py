"""What the federation room counts."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter

JOBS_IMPORTED: Final = Counter(
    "jobs_imported", "Queued jobs that came from other nodes because clients wait for them here."
)
IMPORTED_AT_MOST_ONCE: Final = Counter(
    "imported_at_most_once",
    "At-most-once jobs among the imported ones, which exist here only from then on.",
    metric="disque_jobs_imported_at_most_once_total",
)
JOBS_EXPORTED: Final = Counter(
    "jobs_exported", "Queued jobs that were sent to other nodes because clients wait for them there."
)
COUNTERS: Final = (JOBS_IMPORTED, IMPORTED_AT_MOST_ONCE, JOBS_EXPORTED)
