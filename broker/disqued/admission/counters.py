"""Counters of the admission room."""

from __future__ import annotations

from typing import Final

from disqued.core.runtime.counters import JOBS_ADDED
from disqued.core.telemetry.counter import Counter

JOBS_DEDUPLICATED: Final = Counter(
    "jobs_deduplicated", "ADDJOB requests that got the ID of a job that was added here before under the same key."
)
COUNTERS: Final = (JOBS_ADDED, JOBS_DEDUPLICATED)
