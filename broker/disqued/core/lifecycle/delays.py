"""Jobs that wait for the end of their delay: how many there are on one node, by queue, as no queue counts them."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.jobs.job import ACTIVE, DELAYED, LEASED, POSTPONED, Job
from disqued.core.lifecycle.times import JITTER_MS


class Delays:
    """The counts of one node."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self._by_queue: dict[bytes, int] = {}
        """Only queues that have such jobs."""

    def of(self, queue: bytes) -> int:
        """How many jobs of a queue wait."""
        return self._by_queue.get(queue, 0)

    def begin(self, queue: bytes) -> None:
        """Count a job that waits from now on."""
        self.count += 1
        self._by_queue[queue] = self._by_queue.get(queue, 0) + 1

    def end(self, queue: bytes) -> None:
        """Count a job no longer."""
        self.count -= 1
        left = self._by_queue[queue] - 1
        if left > 0:
            self._by_queue[queue] = left
        else:
            del self._by_queue[queue]


def is_delayed(job: Job, now_ms: i64) -> bool:
    """Whether an active job waits for the end of a delay, here or, as far as this node knows, on another node."""
    if job.state != ACTIVE:
        return False
    if job.flags & (DELAYED | POSTPONED):
        return True
    if job.delay_s == 0 or job.retry_s == 0 or job.flags & LEASED or job.requeue_at_ms == 0:
        return False
    return job.requeue_at_ms - job.retry_s * 1000 - JITTER_MS > now_ms
