"""What a consumer decides, without threads, tasks or a clock of its own; both consumers build on it.

A consumer fetches jobs as long as it has room, runs a handler for each, acknowledges a job when the handler returns and
gives it back (NACK) when the handler raises, and meanwhile says WORKING for everything in hand, fetched but not yet
started jobs included. When it stops it fetches no more, gives back at once what has not begun, waits for the running
handlers up to a deadline, and gives back the rest. Lost connections are survived: jobs in hand stay in hand, and their
results are delivered after the reconnect.

One rule about order: a WORKING that reaches the node after the NACK of the same job takes it out of its queue again,
for a whole retry time. So a job is marked as ending before its end is told, and never while a renewal is on its way.
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
from disqued.client.leases import Leases
from disqued.client.values import Job

log = logging.getLogger("disqued.client")

POLL_MS = 500
"""How long one fetch waits for a job, and a stop for the fetch: cancelling it could lose the job that just comes."""

RECONNECT = (ConnectionFailed, ConnectionLost, NodeLeaving, Loading)
"""Troubles of a fetch that pass; any other one ends the consumer."""

SETTLED = (NoSuchJob, JobAcknowledged, TooLate)
"""Answers to WORKING after which asking again is of no use."""

ONE_ATTEMPT = Backoff(attempts=1)


class ConsumerOptions(TypedDict, total=False):
    """The options of a consumer.

    concurrency: Handlers that run at once; 1 if not given.
    prefetch: Jobs fetched ahead of a free handler; 0 if not given. They are kept alive as the running ones.
    working_after_s: When the first WORKING follows the fetch; 0.25 if not given. 0 sends it with the fetch, which
        costs a command for each job and makes sure of a full retry time for it.
    stop_within_s: How long a stop waits for the running handlers; 10 if not given.
    fast_ack: Acknowledge with FASTACK.
    """

    concurrency: int
    prefetch: int
    working_after_s: float
    stop_within_s: float
    fast_ack: bool


class Plan:
    """A consumer's options and the jobs it has in hand."""

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
            raise ValueError(
                "a consumer needs concurrency >= 1, and no negative prefetch, working_after_s, stop_within_s"
            )
        self.queues = queues
        self.concurrency = concurrency
        self.working_after_s = working_after_s
        self.stop_within_s = stop_within_s
        self.leases = Leases()
        self._capacity = concurrency + prefetch
        self._finish = calls.fast_ack if fast_ack else calls.ack

    @property
    def room(self) -> int:
        """How many more jobs may be fetched now."""
        return self._capacity - len(self.leases)

    @property
    def tick_s(self) -> float:
        """The longest wait between two looks at what is due; no job fetched meanwhile is due earlier."""
        return self.working_after_s or 0.25

    def fetch(self) -> Call[list[Job]]:
        """The call that fills the room."""
        return calls.get(self.queues, count=self.room, timeout_ms=POLL_MS, with_counters=True)

    def fetched(self, jobs: Iterable[Job], now_s: float) -> None:
        """Take jobs in hand."""
        for job in jobs:
            self.leases.hold(job.id, now_s + self.working_after_s)

    def settle(self, job: Job, error: Exception | None) -> Call[int]:
        """How to end a job whose handler returned, or raised `error`."""
        if error is None:
            return self._finish(job.id)
        log.error("job %s of queue %s failed and is given back", job.id, job.queue, exc_info=error)
        return calls.nack(job.id)

    def renewals(self, ids: Iterable[str]) -> list[Call[int]]:
        """The calls that keep jobs in hand."""
        return [calls.working(job_id) for job_id in ids]

    def renewed(self, ids: Iterable[str], results: Iterable[int | DisqueError], now_s: float) -> None:
        """Note the answers to `renewals`."""
        for job_id, result in zip(ids, results, strict=True):
            if isinstance(result, int):
                self.leases.renewed(job_id, result, now_s)
            elif isinstance(result, SETTLED):
                self.leases.not_renewable(job_id)
                log.warning("job %s can not be kept any longer, it may be delivered elsewhere: %s", job_id, result)
            else:
                self.leases.not_renewed(job_id, now_s)
                log.warning("job %s could not be reported as worked on: %s", job_id, result)
