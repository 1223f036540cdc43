"""The decisions of a consumer, without threads, tasks or a clock. Both consumers use them.

A consumer fetches jobs while it has free capacity and runs a handler for each. It acknowledges a job when the handler
returns, and returns it to the queue with NACK when the handler raises. Meanwhile it renews all held jobs with WORKING,
including fetched jobs that have not started. A node of this broker tells how long the lease of a job lasts, so a job
that is finished soon needs no WORKING. For other nodes the first WORKING is sent soon after the fetch. Results are
collected and sent together: when a batch is done, after at most `FLUSH_WITHIN_S`, and at a stop.

When the consumer stops, it fetches no more jobs, returns jobs that have not started at once, waits for the running
handlers up to a deadline, and then returns the other jobs. When a connection is lost, the consumer keeps its jobs and
sends their results after it has reconnected.

One rule about order: a WORKING that arrives after the NACK of the same job removes the job from its queue for a whole
retry time. So a consumer stops renewing a job before it sends the result, and sends no result while a renewal is in
flight.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypedDict

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
    ResponseError,
    TooLate,
)
from disqued.client.nodes import Address
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

FLUSH_WITHIN_S: Final = 0.005
"""How long a result waits for further ones."""

FLUSH_JOBS: Final = 256
"""So many results are sent without waiting for further ones. It is also the number of IDs in one ACKJOB or NACK."""

MOST_UNSENT: Final = 4096
"""With so many results that were not sent, no more jobs are fetched."""

_FIRST_WORKING_S: Final = 0.25
"""When to send the first WORKING if the node did not tell the lease."""

_SYNTAX_ERROR: Final = "ERR syntax error"


class ConsumerOptions(TypedDict, total=False):
    """The options of a consumer.

    concurrency: How many handlers run at once; default 1.
    prefetch: How many jobs to fetch in advance, before a handler is free; default 0. They are renewed, too.
    working_after_s: When to send the first WORKING after the fetch. By default, after 55 % of the lease, which the node
        tells with the job, and after 0.25 with nodes that do not. With 0 it is sent at once, which costs one command
        per job and guarantees each job a full retry time.
    stop_within_s: How long a stop waits for the running handlers; default 10.
    fast_ack: Acknowledge with FASTACK.
    """

    concurrency: int
    prefetch: int
    working_after_s: float | None
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
        working_after_s: float | None = None,
        stop_within_s: float = 10.0,
        fast_ack: bool = False,
    ) -> None:
        if concurrency < 1 or prefetch < 0 or (working_after_s or 0) < 0 or stop_within_s < 0:
            raise ValueError("a consumer needs concurrency >= 1, and prefetch, working_after_s and stop_within_s >= 0")
        self.queues = queues
        self.concurrency = concurrency
        self.working_after_s = working_after_s
        self.stop_within_s = stop_within_s
        self.schedule = RenewalSchedule()
        self._capacity = concurrency + prefetch
        self._least_room = max((prefetch + 1) // 2, 1)
        self._finish = calls.fast_ack if fast_ack else calls.ack
        self._lock = threading.Lock()
        """A job leaves the held ones and joins those with a result in one step."""
        self._done: list[str] = []
        self._failed: list[str] = []
        self._without_requeue: Address | None = None

    @property
    def has_room(self) -> bool:
        """Whether to fetch jobs now: half of the jobs fetched ahead were started, so each fetch returns several."""
        return self._capacity - len(self.schedule) >= self._least_room and self.unsent < MOST_UNSENT

    @property
    def unsent(self) -> int:
        """How many results wait to be sent."""
        return len(self._done) + len(self._failed)

    @property
    def tick_s(self) -> float:
        """The longest time between two checks for due renewals; a job fetched in between is not due earlier."""
        return self.working_after_s or _FIRST_WORKING_S

    def fetch(self, node: Address | None) -> Call[list[Job]]:
        """Return the call that fetches as many jobs as there is capacity for, from this node if it is known."""
        return calls.get(
            self.queues,
            count=self._capacity - len(self.schedule),
            timeout_ms=POLL_MS,
            with_counters=True,
            with_requeue=node is None or node != self._without_requeue,
        )

    def is_unknown_option(self, error: ResponseError, fetch: Call[list[Job]], node: Address | None) -> bool:
        """Whether the node refused a fetch because it does not tell leases; the next fetch does not request them."""
        if str(error) != _SYNTAX_ERROR or "WITHREQUEUE" not in fetch.arguments:
            return False
        self._without_requeue = node
        return True

    def disconnected(self) -> None:
        """Record that the node was lost: another version may run there when it is back."""
        self._without_requeue = None

    def fetched(self, jobs: Iterable[Job], now_s: float) -> None:
        """Hold these jobs."""
        for job in jobs:
            if self.working_after_s is not None:
                self.schedule.hold(job.id, now_s + self.working_after_s)
            elif job.requeue_in_ms is None:
                self.schedule.hold(job.id, now_s + _FIRST_WORKING_S)
            else:
                self.schedule.hold_leased(job.id, job.requeue_in_ms, now_s)

    def settle(self, job: Job, error: Exception | None) -> None:
        """Note the result of a job whose handler returned, or raised `error`, unless the job was returned before."""
        if error is not None:
            log.error("handler failed, the job returns to its queue job=%s queue=%r", job.id, job.queue, exc_info=error)
        with self._lock:
            if self.schedule.release(job.id):
                (self._done if error is None else self._failed).append(job.id)

    def give_back(self, ids: Iterable[str]) -> None:
        """Note that these jobs return to their queues, except those that are not held any more."""
        with self._lock:
            self._failed.extend(job_id for job_id in ids if self.schedule.release(job_id))

    def give_all_back(self) -> None:
        """Note that all held jobs return to their queues; later results of their handlers are ignored."""
        with self._lock:
            self._failed.extend(self.schedule.release_all())

    def endings(self) -> list[Call[int]]:
        """Return the calls that finish the jobs whose results were noted since the last call."""
        with self._lock:
            done, self._done = self._done, []
            failed, self._failed = self._failed, []
        return [*_in_parts(self._finish, done), *_in_parts(calls.nack, failed)]

    @staticmethod
    def ended(endings: Iterable[Call[int]], results: Iterable[int | DisqueError]) -> None:
        """Report the calls of `endings` that failed."""
        for ending, error in zip(endings, results, strict=True):
            if isinstance(error, DisqueError):
                ids = ",".join(str(job_id) for job_id in ending.arguments[1:])
                log.warning(
                    "%s failed, the jobs are delivered again after their retry time jobs=%s error=%r",
                    ending.name,
                    ids,
                    str(error),
                )

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


def _in_parts(finish: Callable[..., Call[int]], ids: Sequence[str]) -> Iterator[Call[int]]:
    """Return calls that finish all jobs, a bounded number of them each."""
    return (finish(*ids[first : first + FLUSH_JOBS]) for first in range(0, len(ids), FLUSH_JOBS))
