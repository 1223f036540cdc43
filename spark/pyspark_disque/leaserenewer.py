"""Renews the leases of jobs while Spark processes them: a background thread sends WORKING for all held jobs.

A node requeues a job when its retry time passes without an acknowledgement or a WORKING. WORKING replies with the retry
time, but GETJOB does not. So the thread sends the first WORKING immediately, and the next ones after a third of the
retry time, which leaves time for two more attempts. The thread has its own connections, never raises into Spark, and
logs failures.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeGuard

from disqued.client import DisqueError, JobAcknowledged, NoSuchJob, TooLate
from pyspark_disque.brokers import Brokers, Member
from pyspark_disque.clock import RETRY_PAUSE_S, Clock
from pyspark_disque.jobreader import REPLY_TIMEOUT_S, by_preference
from pyspark_disque.offsets import JobRef
from pyspark_disque.options import Options

LOG: Final = logging.getLogger("pyspark_disque")
RENEW_SHARE: Final = 1 / 3
MAX_WAIT_S: Final = 60.0
JOBS_PER_CALL: Final = 128
"""After this many renewals, the thread checks which jobs are still held and whether the node still answers."""
WARN_EVERY_S: Final = 30.0


class HeldLease(NamedTuple):
    """A held job: the node that knows it, when to renew its lease, and whether no node knew it the last time."""

    node: str
    due_s: float
    is_missing: bool = False


class LeaseRenewer:
    """Holds jobs by renewing their leases. `hold`, `release` and `close` are thread-safe; `hold` starts the thread."""

    def __init__(self, options: Options, clock: Clock) -> None:
        self._options = dataclasses.replace(options, timeout_s=min(options.timeout_s, REPLY_TIMEOUT_S))
        self._clock = clock
        self._lock = threading.Lock()
        self._held: dict[str, HeldLease] = {}
        self._changed = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._warned_at_s = -math.inf
        self._warned_too_late = False

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, jobs: Iterable[JobRef]) -> None:
        """Renew the leases of these jobs from now on."""
        now_s = self._clock.now_s()
        with self._lock:
            self._held.update((job.id, HeldLease(job.node, now_s)) for job in jobs)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="disque-leases", daemon=True)
            self._thread.start()
        self._changed.set()

    def release(self, ids: Iterable[str]) -> None:
        """Stop renewing the leases of these jobs, for example because they are acknowledged."""
        with self._lock:
            for job_id in ids:
                self._held.pop(job_id, None)

    def close(self) -> None:
        """Stop renewing all leases. The jobs are requeued after their retry time."""
        self._closed = True
        self._changed.set()
        if self._thread is not None:
            self._thread.join(REPLY_TIMEOUT_S)

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        with Brokers(self._options) as brokers:
            while not self._closed:
                self._changed.clear()
                try:
                    self._renew(brokers)
                except Exception as error:  # noqa: BLE001 - whatever the error is, the renewal must be retried
                    self._warn(error)
                    self._changed.wait(1.0)
                self._changed.wait(self._wait_s())

    def _wait_s(self) -> float:
        """Return the time until the next renewal is due."""
        with self._lock:
            due_s = min((held.due_s for held in self._held.values()), default=math.inf)
        return min(MAX_WAIT_S, max(0.0, due_s - self._clock.now_s()))

    def _warn(self, error: Exception) -> None:
        now_s = self._clock.now_s()
        if now_s - self._warned_at_s >= WARN_EVERY_S:
            self._warned_at_s = now_s
            LOG.warning("cannot renew leases, retrying jobs=%d error=%s", len(self), error)

    def _renew(self, brokers: Brokers) -> None:
        now_s = self._clock.now_s()
        by_node: dict[str, list[str]] = {}
        with self._lock:
            for job_id, held in self._held.items():
                if held.due_s <= now_s:
                    by_node.setdefault(held.node, []).append(job_id)
        members = brokers.members() if by_node else ()
        for node, ids in by_node.items():
            self._renew_group(brokers, by_preference(members, node), ids)

    def _renew_group(self, brokers: Brokers, members: Sequence[Member], ids: Sequence[str]) -> None:
        """Send WORKING to one node after another until each job is known to one."""
        left = list(ids)
        problem: DisqueError | None = None
        for member in members:
            asking, left = left, []
            for first in range(0, len(asking), JOBS_PER_CALL):
                ids = [job_id for job_id in asking[first : first + JOBS_PER_CALL] if job_id in self._held]
                results = brokers.at(member.address).working_many(ids)
                left += self._note(member.id, dict(zip(ids, results, strict=True)))
                failed = next((result for result in results if _is_failure(result)), None)
                if failed is not None:
                    left += asking[first + JOBS_PER_CALL :]
                    problem = failed
                    break
        self._note_unknown(left, problem)

    def _note(self, node: str, results: Mapping[str, int | DisqueError]) -> list[str]:
        """Record the replies of a node to WORKING, and return the jobs for which to ask another node."""
        now_s = self._clock.now_s()
        due_s: dict[str, float] = {}
        finished: list[str] = []
        unknown: list[str] = []
        for job_id, result in results.items():
            match result:
                case int():
                    due_s[job_id] = now_s + RENEW_SHARE * result if result else math.inf
                case JobAcknowledged():
                    finished.append(job_id)
                case TooLate():
                    due_s[job_id] = math.inf
                    self._warn_too_late(job_id)
                case _:
                    unknown.append(job_id)
        self._set_due({job_id: HeldLease(node, due) for job_id, due in due_s.items()})
        self.release(finished)
        return unknown

    def _set_due(self, changed: Mapping[str, HeldLease]) -> None:
        """Update the jobs that are still held."""
        with self._lock:
            self._held.update((job_id, held) for job_id, held in changed.items() if job_id in self._held)

    def _note_unknown(self, ids: Sequence[str], problem: DisqueError | None) -> None:
        """Release jobs that no node knew twice although all answered: they are acknowledged, deleted or expired."""
        if problem is not None and ids:
            self._warn(problem)
        due_s = self._clock.now_s() + RETRY_PAUSE_S
        with self._lock:
            held = {job_id: self._held[job_id] for job_id in ids if job_id in self._held}
        gone = [job_id for job_id, lease in held.items() if problem is None and lease.is_missing]
        self.release(gone)
        self._set_due({job_id: HeldLease(lease.node, due_s, problem is None) for job_id, lease in held.items()})

    def _warn_too_late(self, job_id: str) -> None:
        if not self._warned_too_late:
            self._warned_too_late = True
            LOG.warning(
                "cannot renew the lease because more than half of the job's ttl has passed; it may also be delivered "
                "to another consumer; further jobs are not logged job=%s",
                job_id,
            )


def _is_failure(result: int | DisqueError) -> TypeGuard[DisqueError]:
    return isinstance(result, DisqueError) and not isinstance(result, NoSuchJob | JobAcknowledged | TooLate)
