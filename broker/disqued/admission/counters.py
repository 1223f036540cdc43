"""What the admission room counts."""

from __future__ import annotations

from typing import Final

from disqued.core.runtime.counters import JOBS_ADDED
from disqued.core.telemetry.counter import Counter

JOBS_DEDUPLICATED: Final = Counter(
    "jobs_deduplicated", "Adds that were answered with the ID of a job added here before under the same key."
)
COUNTERS: Final = (JOBS_ADDED, JOBS_DEDUPLICATED)
