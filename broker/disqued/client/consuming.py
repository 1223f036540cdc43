"""The decisions of a consumer, without threads, tasks or a clock. Both consumers use them.

A consumer fetches jobs while it has free capacity and runs a handler for each. It acknowledges a job when the handler
returns, and returns it to the queue with NACK when the handler raises. Meanwhile it renews all held jobs with WORKING,
including fetched jobs that have not started. A node of this broker tells how long the lease of a job lasts, so a job
that is finished soon needs no WORKING. For other nodes the first WORKING is sent soon after the fetch. Results are
collected and sent together: when a batch is done, after at most `FLUSH_WITHIN_S`, and at a stop.

A consumer moves to the node that created most of its jobs (see `locality`). It finishes and renews each job at the node
that delivered it, because another node may not know the job. For a moment after the move it also asks the former node
for jobs, which may have imported some for this consumer.

When the consumer stops, it fetches no more jobs, returns jobs that have not started at once and uncounted, waits for
the running handlers up to a deadline, and then returns the other jobs. When a connection is lost, the consumer keeps
its jobs and sends their results after it has reconnected.

The reason, the delay and the other options of NACK (`outcomes`) go to nodes that know them. A node that does not takes
an option for a wrong job ID, refuses the whole NACK and gets it again without options, as all later ones.

One rule about order: a WORKING that arrives after the NACK of the same job removes the job from its queue for a whole
retry time. So a consumer stops renewing a job before it sends the result, and sends no result while a renewal is in
flight.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypedDict

from disqued.client import calls
from disqued.client.calls import Call
from disqued.client.errors import (
    BadJobId,
    ClockError,
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
from disqued.client.locality import DRAIN_S, Locality
from disqued.client.nodes import Address
from disqued.client.outcomes import INTERRUPTED, PLAIN, UNSTARTED, GiveBack, Reject, Retry, give_back_after
from disqued.client.renewals import RenewalSchedule
from disqued.client.session import Session
from disqued.client.values import Job

log = logging.getLogger("disqued.client")

POLL_MS = 500
"""How long one fetch waits for a job. A stop waits for the fetch, because cancelling it could lose a job."""

RECONNECT = (ConnectionFailed, ConnectionLost, NodeLeaving, ClockError, Loading)
"""Transient errors of a fetch; any other error ends the consumer."""

SETTLED = (NoSuchJob, JobAcknowledged, TooLate)
"""Errors of WORKING after which the job cannot be renewed any more."""

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
    results: Keep the text or the bytes that a handler returns as the result of the job, if that has `retain_s`.
    with_meta: Give handlers `Job.meta` and `Job.priority`; both are None at nodes that do not know them.
    """

    concurrency: int
    prefetch: int
    working_after_s: float | None
    stop_within_s: float
    fast_ack: bool
    with_meta: bool
    results: bool


@dataclass(slots=True)
class Results:
    """The jobs of one node whose results were not sent yet."""

    done: list[str] = field(default_factory=list)
    with_result: list[tuple[str, str | bytes]] = field(default_factory=list)
    """Jobs that are done, and what their handlers returned."""
    given_back: dict[GiveBack, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ending:
    """A call that finishes jobs or gives them back."""

    ids: tuple[str, ...]
    call: Call[int]
    how: GiveBack = PLAIN
    instead: Call[int] | None = None
    """What to send if the node takes no result: it would keep none, or does not know the option."""


class Plan:
    """The options of a consumer, the session that it fetches with, and the jobs that it holds."""

    def __init__(
        self,
        source: Session,
        queues: str | Sequence[str],
        *,
        concurrency: int = 1,
        prefetch: int = 0,
        working_after_s: float | None = None,
        stop_within_s: float = 10.0,
        fast_ack: bool = False,
        with_meta: bool = False,
        results: bool = False,
    ) -> None:
        if concurrency < 1 or prefetch < 0 or (working_after_s or 0) < 0 or stop_within_s < 0:
            raise ValueError("a consumer needs concurrency >= 1, and prefetch, working_after_s and stop_within_s >= 0")
        self.source = source
        """The session that fetches jobs."""
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
        self.unsent = 0
        """How many results wait to be sent."""
        self._results: dict[Session, Results] = {}
        self._sources: dict[str, Session] = {}
        """The session that fetched each held job."""
        self._locality = Locality()
        self._former: Session | None = None
        """The session before a move, until the jobs that its node had for this consumer are fetched."""
        self._former_until_s = 0.0
        self._former_is_next = False
        self._without_requeue: Address | None = None
        self._with_meta = with_meta
        self._with_results = results
        self._without_meta: Address | None = None
        self._without_nack_options: Address | None = None

    @property
    def has_room(self) -> bool:
        """Whether to fetch jobs now: half of the jobs fetched ahead were started, so each fetch returns several."""
        return self._capacity - len(self.schedule) >= self._least_room and self.unsent < MOST_UNSENT

    @property
    def tick_s(self) -> float:
        """The longest time between two checks for due renewals; a job fetched in between is not due earlier."""
        return self.working_after_s or _FIRST_WORKING_S

    def fetch(self, wait_ms: int = POLL_MS) -> tuple[Session, Call[list[Job]]]:
        """Return the call that fetches as many jobs as there is capacity for, and the session for it.

        It waits at most `wait_ms` for a job. After a move, every second call is for the former node, and does not wait
        there.
        """
        self._former_is_next = self._former is not None and not self._former_is_next
        source = self._former if self._former is not None and self._former_is_next else self.source
        call = calls.get(
            self.queues,
            count=self._capacity - len(self.schedule),
            timeout_ms=wait_ms,
            nohang=source is self._former,
            with_counters=True,
            with_requeue=source.node is None or source.node != self._without_requeue,
            with_meta=self._with_meta and (source.node is None or source.node != self._without_meta),
        )
        return source, call

    def is_unknown_option(self, error: ResponseError, source: Session, fetch: Call[list[Job]]) -> bool:
        """Whether the node refused a fetch because it does not know an option; the next fetch is without it."""
        if str(error) != _SYNTAX_ERROR:
            return False
        if "WITHMETA" in fetch.arguments:
            self._without_meta = source.node
            return True
        if "WITHREQUEUE" not in fetch.arguments:
            return False
        self._without_requeue = source.node
        return True

    def disconnected(self, source: Session) -> None:
        """Record that the node was lost: another version may run there when it is back."""
        self._without_requeue = None
        self._without_meta = None
        self._without_nack_options = None
        if source is self._former:
            self._former = None

    def fetched(self, jobs: Sequence[Job], source: Session, now_s: float) -> str | None:
        """Hold these jobs. Returns the creator of jobs whose node to move to now; None to stay."""
        self._hold(jobs, source, now_s)
        if self._former is None:
            return self._locality.fetched(jobs, source.node_id, now_s)
        if source is self._former and not jobs and now_s >= self._former_until_s:
            self._former = None
            self.release(source)
        return None

    def moved(self, creator: str, source: Session | None, now_s: float) -> None:
        """Fetch with this session from now on, or stay if it is None because the node could not be reached."""
        if source is None:
            self._locality.refused(creator, now_s)
            return
        log.info("moving to the node that jobs come from node=%s former=%s", source.node, self.source.node)
        self._former, self._former_until_s = self.source, now_s + DRAIN_S
        self.source = source

    def release(self, source: Session) -> None:
        """Close the idle connections of a session that is not used to fetch any more."""
        if source is not self.source and source is not self._former:
            source.drop_idle()

    def drop_idle(self) -> None:
        """Close the idle connections of all sessions: nothing is fetched any more."""
        self.source.drop_idle()
        if self._former is not None:
            self._former.drop_idle()

    def _hold(self, jobs: Iterable[Job], source: Session, now_s: float) -> None:
        for job in jobs:
            self._sources[job.id] = source
            if self.working_after_s is not None:
                self.schedule.hold(job.id, now_s + self.working_after_s)
            elif job.requeue_in_ms is None:
                self.schedule.hold(job.id, now_s + _FIRST_WORKING_S)
            else:
                self.schedule.hold_leased(job.id, job.requeue_in_ms, now_s)

    def settle(self, job: Job, error: Exception | None, returned: object = None) -> None:
        """Note the result of a job whose handler returned, or raised `error`, unless the job was returned before."""
        result = returned if self._with_results and isinstance(returned, str | bytes) else None
        if error is not None:
            _log_failure(job, error)
        with self._lock:
            if self.schedule.release(job.id):
                if error is None and result is not None:
                    self._results_for(job.id).with_result.append((job.id, result))
                elif error is None:
                    self._results_for(job.id).done.append(job.id)
                else:
                    self._note_given_back(job.id, give_back_after(error))

    def give_back_unstarted(self, ids: Iterable[str]) -> None:
        """Note that these jobs, which no handler has begun, return to their queues; not those that are held no more."""
        with self._lock:
            for job_id in ids:
                if self.schedule.release(job_id):
                    self._note_given_back(job_id, UNSTARTED)

    def give_all_back(self) -> None:
        """Note that all held jobs return to their queues; later results of their handlers are ignored."""
        with self._lock:
            for job_id in self.schedule.release_all():
                self._note_given_back(job_id, INTERRUPTED)

    def _note_given_back(self, job_id: str, how: GiveBack) -> None:
        self._results_for(job_id).given_back.setdefault(how, []).append(job_id)

    def _results_for(self, job_id: str) -> Results:
        """Return where to note the result of a job that is not held any more."""
        self.unsent += 1
        return self._results.setdefault(self._sources.pop(job_id), Results())

    def endings(self) -> list[tuple[Session, list[Ending]]]:
        """Return the calls that finish the jobs whose results were noted since the last call, by session."""
        with self._lock:
            found, self._results = self._results, {}
            self.unsent = 0
        return [(source, self._endings_at(source, results)) for source, results in found.items()]

    def _endings_at(self, source: Session, results: Results) -> list[Ending]:
        endings = [Ending(ids, self._finish(*ids)) for ids in _in_parts(results.done)]
        endings += [
            Ending((job_id,), calls.ack(job_id, result=result), instead=self._finish(job_id))
            for job_id, result in results.with_result
        ]
        no_options = source.node is not None and source.node == self._without_nack_options
        for how, given_back in results.given_back.items():
            known = PLAIN if no_options else how
            endings += [Ending(ids, known.call(*ids), known) for ids in _in_parts(given_back)]
        return endings

    def ended(self, source: Session, endings: Sequence[Ending], results: Sequence[int | DisqueError]) -> list[Ending]:
        """Report the calls that failed. Returns those to send instead of calls whose options the node does not know.

        Such a node takes an option for a job ID and has done nothing.
        """
        instead: list[Ending] = []
        for ending, error in zip(endings, results, strict=True):
            if not isinstance(error, DisqueError):
                continue
            if isinstance(error, BadJobId) and ending.how != PLAIN:
                self._without_nack_options = source.node
                instead.append(Ending(ending.ids, PLAIN.call(*ending.ids)))
                continue
            if isinstance(error, ResponseError) and ending.instead is not None:
                log.warning("the node keeps no result of the job job=%s error=%r", ending.ids[0], str(error))
                instead.append(Ending(ending.ids, ending.instead))
                continue
            log.warning(
                "%s failed, the jobs are delivered again after their retry time jobs=%s error=%r",
                ending.call.name,
                ",".join(ending.ids),
                str(error),
            )
        return instead

    def due(self, now_s: float) -> list[tuple[Session, list[str]]]:
        """Return the jobs to renew now, by session."""
        found: dict[Session, list[str]] = {}
        for job_id in self.schedule.due(now_s):
            source = self._sources.get(job_id)
            if source is not None:  # else its handler has just ended
                found.setdefault(source, []).append(job_id)
        return list(found.items())

    def renewed(self, ids: Iterable[str], results: Iterable[int | DisqueError], now_s: float) -> None:
        """Record the results of the WORKING of each job."""
        for job_id, result in zip(ids, results, strict=True):
            if isinstance(result, int):
                self.schedule.renewed(job_id, result, now_s)
            elif isinstance(result, SETTLED):
                self.schedule.not_renewable(job_id)
                log.warning("job cannot be renewed, it may be delivered again job=%s error=%r", job_id, str(result))
            else:
                self.schedule.not_renewed(job_id, now_s)
                log.warning("renewal failed job=%s error=%r", job_id, str(result))


def _log_failure(job: Job, error: Exception) -> None:
    if isinstance(error, Retry):
        log.info("handler wants the job again job=%s queue=%r delay_s=%s", job.id, job.queue, error.delay_s)
    elif isinstance(error, Reject):
        log.warning("handler rejected the job job=%s queue=%r reason=%r", job.id, job.queue, str(error))
    else:
        log.error("handler failed, the job returns to its queue job=%s queue=%r", job.id, job.queue, exc_info=error)


def _in_parts(ids: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Return all IDs, a bounded number of them at a time."""
    return (tuple(ids[first : first + FLUSH_JOBS]) for first in range(0, len(ids), FLUSH_JOBS))
