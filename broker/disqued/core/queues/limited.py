"""The delivery of the next job of a queue with limits."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.jobs.job import Job
from disqued.core.queues.queue import PAUSED_OUT, Queue


def take_limited(queue: Queue, now_ms: i64) -> Job | None:
    """Hand out the next job with a token; None if there is none, or the queue is empty or paused for output."""
    limiter = queue.limiter
    if limiter is None or queue.length == 0 or queue.pause & PAUSED_OUT or not limiter.admits(now_ms):
        return None
    job = queue.type.release.take(queue, now_ms)
    if job is not None:
        limiter.took(job)
    return job
