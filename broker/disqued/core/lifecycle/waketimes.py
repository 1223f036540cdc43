"""The wake times of jobs: when the timer wheel wakes a job, and the random shifts between the holders of a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.job import ACTIVE, BCAST_WILLQUEUE, LEASED, QUEUED, Job
from disqued.core.lifecycle.times import (
    COLLECTION_MS,
    EXPIRY_GRACE_MS,
    JITTER_MS,
    MAX_COLLECTION_MS,
    WILLQUEUE_LEAD_MS,
)
from disqued.core.queues.queue import Release
from disqued.core.timers.wheel import NEAR_MS, TimerWheel

_CHANCES: Final = 1 << 31
"""The modulus of the linear congruential generator behind `_jitter_ms`: each queueing needs a random shift."""


class WakeTimes(Release):
    """The timer wheel of one node, and the wake times that jobs have on it."""

    def __init__(self, draw: Callable[[], float]) -> None:
        self._chance: i64 = int(draw() * _CHANCES)
        self.timers = TimerWheel(int(draw() * NEAR_MS))

    def plan(self, job: Job, now_ms: i64) -> None:
        """Set the time at which a new local job is queued: after its delay, or again after its retry time.

        A job that waits for its parents has no such time.
        """
        if job.is_held:
            job.requeue_at_ms = 0
            return
        job.requeue_at_ms = now_ms + (job.delay_s if job.delay_s > 0 else job.retry_s) * 1000

    def is_leased(self, job: Job, now_ms: i64) -> bool:
        """Whether a worker of this node may be processing the job, and its retry time is not about to end."""
        return job.state == ACTIVE and job.flags & LEASED != 0 and job.requeue_at_ms - now_ms > WILLQUEUE_LEAD_MS

    def _is_expected_elsewhere(self, job: Job, now_ms: i64) -> bool:
        """Whether a new job is queued so late, after a pause of its queue, that other holders are about to queue it."""
        expected_ms: i64 = job.created_ms + (job.delay_s + job.retry_s) * 1000
        return now_ms + WILLQUEUE_LEAD_MS + JITTER_MS // 2 >= expected_ms

    def _jitter_ms(self) -> i64:
        """A random shift of up to a quarter of a second, in either direction."""
        self._chance = (self._chance * 1103515245 + 12345) & (_CHANCES - 1)
        return (self._chance >> 8) % JITTER_MS - JITTER_MS // 2

    def _arm(self, job: Job) -> None:
        """Set the wake time of a job that is not acknowledged; `arm_collection` sets that of an acknowledged one."""
        awake_ms: i64 = job.expire_at_s * 1000 + EXPIRY_GRACE_MS
        requeue_at_ms = job.requeue_at_ms
        if requeue_at_ms != 0 and (job.state == ACTIVE or job.state == QUEUED):
            if job.flags & BCAST_WILLQUEUE:
                requeue_at_ms -= WILLQUEUE_LEAD_MS
            if requeue_at_ms < awake_ms:
                awake_ms = requeue_at_ms
        self.timers.arm(job, awake_ms)

    def arm_collection(self, job: Job, now_ms: i64) -> None:
        """Set the time at which the holders of an acknowledged job are asked again, later with each attempt."""
        awake_ms: i64 = job.expire_at_s * 1000 + EXPIRY_GRACE_MS
        attempts = i64(job.gc_retry)
        period_ms: i64 = min(COLLECTION_MS << attempts, MAX_COLLECTION_MS)
        if job.delivered is not None and now_ms + period_ms < awake_ms:
            awake_ms = now_ms + period_ms + self._jitter_ms()
        self.timers.arm(job, awake_ms)
