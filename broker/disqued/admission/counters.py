"""Counters of the admission room."""

from __future__ import annotations

from typing import Final

from disqued.core.runtime.counters import JOBS_ADDED
from disqued.core.telemetry.counter import Counter

JOBS_DEDUPLICATED: Final = Counter(
    "jobs_deduplicated", "ADDJOB requests that got the ID of a job that was added here before under the same key."
)
ADDS_REFUSED: Final = Counter(
    "adds_refused_full", "ADDJOB requests refused because of the setting `maxlen` or `maxbytes` of their queue."
)
JOBS_DROPPED: Final = Counter(
    "jobs_dropped_oldest", "Jobs that were deleted to make room for new ones (`overflow drop-oldest`)."
)
COPY_TO_REFUSED: Final = Counter(
    "copy_to_refused",
    "Copies for the setting `copy-to` that were refused, because their queue is full or paused.",
)
COUNTERS: Final = (JOBS_ADDED, JOBS_DEDUPLICATED, ADDS_REFUSED, JOBS_DROPPED, COPY_TO_REFUSED)
