"""The verbs for jobs that wait: for the end of a delay, or for other jobs, their parents."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.attributes import AFTER, changed
from disqued.core.jobs.job import ACTIVE, BCAST_QUEUED, BCAST_WILLQUEUE, DELAYED, DELIVERED, Job
from disqued.core.jobs.parents import with_all_met
from disqued.core.lifecycle.registry import Registry

_NOT_DELAYED: Final = 255 - DELAYED


class Holding(Registry):
    """The jobs of one node that must not be queued yet."""

    def _delay(self, job: Job, now_ms: i64) -> None:
        if not job.flags & DELAYED:
            job.flags |= DELAYED
            self.queues.count_delayed_in(self.make_queue(job.queue, now_ms))

    def _end_delay(self, job: Job) -> None:
        if job.flags & DELAYED:
            job.flags &= _NOT_DELAYED
            self.queues.count_delayed_out(job.queue)

    def free(self, job: Job, now_ms: i64) -> None:
        """Plan the first queueing of a job whose parents are all met; the caller wakes it if that is now.

        The node that added it queues it now, or when its delay is over. Its other holders queue it after its retry
        time, unless they hear that it was queued.
        """
        if job.state != ACTIVE or job.requeue_at_ms != 0 or job.is_held or job.flags & DELIVERED:
            return
        at_ms: i64 = now_ms + job.delay_s * 1000
        if job.flags & BCAST_QUEUED:
            if job.retry_s == 0:
                return
            job.flags |= BCAST_WILLQUEUE
            at_ms += job.retry_s * 1000 + self._jitter_ms()
        elif job.delay_s > 0:
            self._delay(job, now_ms)
        job.requeue_at_ms = at_ms
        self._arm(job)

    def free_elsewhere(self, job: Job) -> None:
        """Another node has queued a job that waits for its parents here: so they are met."""
        job.flags |= BCAST_QUEUED
        self.set_attributes(job, changed(job.extra, {AFTER: with_all_met(job.after)}))
