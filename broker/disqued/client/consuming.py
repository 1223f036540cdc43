"""The decisions of a consumer, without threads, tasks or a clock. Both consumers use them.

A consumer fetches jobs while it has free capacity and runs a handler for each. It acknowledges a job when the handler
returns, and returns it to the queue with NACK when the handler raises. Meanwhile it renews all held jobs with WORKING,
including fetched jobs that have not started. When it stops, it fetches no more jobs, returns jobs that have not started
at once, waits for the running handlers up to a deadline, and then returns the other jobs. When a connection is lost,
the consumer keeps its jobs and sends their results after it has reconnected.

One rule about order: a WORKING that arrives after the NACK of the same job removes the job from its queue for a whole
retry time. So a consumer stops renewing a job before it sends the result, and never while a renewal is in flight.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TypedDict

from disqued.client import calls
from disqued.client.backoff import Backoff
from disqued.client.calls import Call
from disqued.client.errors import (
    ConnectionFailed,
    ConnectionLost,
    DisqueError,
    JobAcknowledged,
    Loading,
    NodeLeaving,
    NoSuchJob,
    TooLate,
)
from disqued.client.renewals import RenewalSchedule
from disqued.client.values import Job

log = logging.getLogger("disqued.client")

POLL_MS = 500
"""How long one fetch waits for a job. A stop waits for the fetch, because cancelling it could lose a job."""

RECONNECT = (ConnectionFailed, ConnectionLost, NodeLeaving, Loading)
"""Transient errors of a fetch; any other error ends the consumer."""

SETTLED = (NoSuchJob, JobAcknowledged, TooLate)
"""Errors of WORKING after which the job cannot be renewed any more."""

ONE_ATTEMPT = Backoff(attempts=1)


class ConsumerOptions(TypedDict, total=False):
    """The options of a consumer.

    concurrency: How many handlers run at once; default 1.
    prefetch: How many jobs to fetch in advance, before a handler is free; default 0. They are renewed, too.
    working_after_s: When to send the first WORKING after the fetch; default 0.25. With 0 it is sent at once, which
        costs one command per job and guarantees each job a full retry time.
    stop_within_s: How long a stop waits for the running handlers; default 10.
    fast_ack: Acknowledge with FASTACK.
    """

    concurrency: int
    prefetch: int
    working_after_s: float
    stop_within_s: float
    fast_ack: bool


class Plan:
    """The options of a consumer and the jobs that it holds."""

    def __init__(
        self,
        queues: str | Sequence[str],
        *,
        concurrency: int = 1,
        prefetch: int = 0,
        working_after_s: float = 0.25,
        stop_within_s: float = 10.0,
        fast_ack: bool = False,
    ) -> None:
        if concurrency < 1 or prefetch < 0 or working_after_s < 0 or stop_within_s < 0:
            raise ValueError("a consumer needs concurrency >= 1, and prefetch, working_after_s and stop_within_s >= 0")
        self.queues = queues
        self.concurrency = concurrency
        self.working_after_s = working_after_s
        self.stop_within_s = stop_within_s
        self.schedule = RenewalSchedule()
        self._capacity = concurrency + prefetch
        self._finish = calls.fast_ack if fast_ack else calls.ack

    @property
    def room(self) -> int:
        """How many more jobs can be fetched now."""
        return self._capacity - len(self.schedule)

    @property
    def tick_s(self) -> float:
        """The longest time between two checks for due renewals; a job fetched in between is not due earlier."""
        return self.working_after_s or 0.25

    def fetch(self) -> Call[list[Job]]:
        """Return the call that fetches as many jobs as there is capacity for."""
        return calls.get(self.queues, count=self.room, timeout_ms=POLL_MS, with_counters=True)

    def fetched(self, jobs: Iterable[Job], now_s: float) -> None:
        """Hold these jobs."""
        for job in jobs:
            self.schedule.hold(job.id, now_s + self.working_after_s)

    def settle(self, job: Job, error: Exception | None) -> Call[int]:
        """Return the call that finishes a job whose handler returned, or raised `error`."""
        if error is None:
            return self._finish(job.id)
        log.error("handler failed, the job returns to its queue job=%s queue=%r", job.id, job.queue, exc_info=error)
        return calls.nack(job.id)

    def renewals(self, ids: Iterable[str]) -> list[Call[int]]:
        """Return the calls that renew these jobs."""
        return [calls.working(job_id) for job_id in ids]

    def renewed(self, ids: Iterable[str], results: Iterable[int | DisqueError], now_s: float) -> None:
        """Record the results of `renewals`."""
        for job_id, result in zip(ids, results, strict=True):
            if isinstance(result, int):
                self.schedule.renewed(job_id, result, now_s)
            elif isinstance(result, SETTLED):
                self.schedule.not_renewable(job_id)
                log.warning("job cannot be renewed, it may be delivered again job=%s error=%r", job_id, str(result))
            else:
                self.schedule.not_renewed(job_id, now_s)
                log.warning("renewal failed job=%s error=%r", job_id, str(result))
