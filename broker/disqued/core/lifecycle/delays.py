"""Which jobs wait for the end of their delay."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.jobs.job import ACTIVE, DELAYED, LEASED, POSTPONED, Job
from disqued.core.lifecycle.times import JITTER_MS


def is_delayed(job: Job, now_ms: i64) -> bool:
    """Whether an active job waits for the end of a delay, here or, as far as this node knows, on another node."""
    if job.state != ACTIVE:
        return False
    if job.flags & (DELAYED | POSTPONED):
        return True
    if job.delay_s == 0 or job.retry_s == 0 or job.flags & LEASED or job.requeue_at_ms == 0:
        return False
    return job.requeue_at_ms - job.retry_s * 1000 - JITTER_MS > now_ms
