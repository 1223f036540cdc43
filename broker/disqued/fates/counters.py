"""What the fates room counts."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter

RECORDS_KEPT: Final = Counter("job_records_kept", "Records of finished jobs that this node made.")
RECORDS_DROPPED: Final = Counter(
    "job_records_dropped", "Records of finished jobs that were forgotten early, because there was no memory for them."
)
WATCHES_REFUSED: Final = Counter(
    "job_watches_refused",
    "Questions of other nodes about jobs that were answered but not remembered: there were too many.",
)
RESULTS_STALE: Final = Counter(
    "job_results_stale", "Results that were ignored, because the job was handed out again under a greater claim."
)
COUNTERS: Final = (RECORDS_KEPT, RECORDS_DROPPED, WATCHES_REFUSED, RESULTS_STALE)
