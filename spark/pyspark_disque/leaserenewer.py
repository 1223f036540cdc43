"""Renews the leases of jobs while Spark processes them: a background thread sends WORKING for all held jobs.

A node requeues a job when its lease, the rest of its retry time, passes without an acknowledgement or a WORKING. Nodes
of this broker tell the lease with the job, so a batch that ends within a third of it needs no WORKING. Nodes of the
original do not, so the thread sends the first WORKING immediately. WORKING replies with the retry time, and the next
one follows after a third of that, which leaves time for two more attempts. The thread has its own connections, never
raises into Spark, and logs failures.

Jobs are held and released as batches. A batch is a few groups of jobs that are renewed at the same time by the same
node, so jobs that are done soon cost nothing.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard

from disqued.client import DisqueError, JobAcknowledged, NoSuchJob, TooLate
from pyspark_disque.brokers import Brokers, Member
from pyspark_disque.clock import RETRY_PAUSE_S, Clock
from pyspark_disque.jobreader import REPLY_TIMEOUT_S, by_preference
from pyspark_disque.offsets import JobGroup
from pyspark_disque.options import Options

LOG: Final = logging.getLogger("pyspark_disque")
RENEW_SHARE: Final = 1 / 3
MAX_WAIT_S: Final = 60.0
JOBS_PER_CALL: Final = 128
"""After this many renewals, the thread checks whether the batch is still held and whether the node still answers."""
WARN_EVERY_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class HeldJobs:
    """Held jobs: the node that knows them, when to renew their leases, and whether no node knew them the last time."""

    node: str
    ids: Sequence[bytes]
    due_s: float
    are_missing: bool = False


class LeaseRenewer:
    """Holds jobs by renewing their leases. `hold`, `release` and `close` are thread-safe; `hold` starts the thread."""

    def __init__(self, options: Options, clock: Clock) -> None:
        self._options = dataclasses.replace(options, timeout_s=min(options.timeout_s, REPLY_TIMEOUT_S))
        self._clock = clock
        self._lock = threading.Lock()
        self._batches: dict[int, list[HeldJobs]] = {}
        self._changed = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._warned_at_s = -math.inf
        self._warned_too_late = False

    def __len__(self) -> int:
        with self._lock:
            return sum(len(held.ids) for held in self._all_held())

    def _all_held(self) -> Iterator[HeldJobs]:
        return (held for batch in self._batches.values() for held in batch)

    def hold(self, batch: int, groups: Iterable[JobGroup], requeue_at_s: float = -math.inf) -> None:
        """Renew the leases of the jobs of a batch from now on.

        `requeue_at_s` is when the first lease ends, by the clock of this renewer. By default, that is unknown.
        """
        now_s = self._clock.now_s()
        due_s = now_s + RENEW_SHARE * max(0.0, requeue_at_s - now_s)
        with self._lock:
            self._batches[batch] = [HeldJobs(group.node, group.ids, due_s) for group in groups]
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="disque-leases", daemon=True)
            self._thread.start()
        self._changed.set()

    def release(self, batch: int) -> None:
        """Stop renewing the leases of a batch, for example because its jobs are acknowledged."""
        with self._lock:
            self._batches.pop(batch, None)

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
            due_s = min((held.due_s for held in self._all_held()), default=math.inf)
        return min(MAX_WAIT_S, max(0.0, due_s - self._clock.now_s()))

    def _warn(self, error: Exception) -> None:
        now_s = self._clock.now_s()
        if now_s - self._warned_at_s >= WARN_EVERY_S:
            self._warned_at_s = now_s
            LOG.warning("cannot renew leases, retrying jobs=%d error=%s", len(self), error)

    def _renew(self, brokers: Brokers) -> None:
        now_s = self._clock.now_s()
        with self._lock:
            due = [(number, held) for number, batch in self._batches.items() for held in batch if held.due_s <= now_s]
        members = brokers.members() if due else ()
        for number, held in due:
            renewed = self._renew_jobs(brokers, by_preference(members, held.node), number, held)
            self._replace(number, held, renewed)

    def _replace(self, number: int, old: HeldJobs, new: Iterable[HeldJobs]) -> None:
        """Replace jobs whose renewal was attempted, unless their batch was released or held again meanwhile."""
        with self._lock:
            batch = self._batches.get(number, [])
            if any(held is old for held in batch):
                self._batches[number] = [*(held for held in batch if held is not old), *new]

    def _renew_jobs(
        self, brokers: Brokers, members: Sequence[Member], number: int, held: HeldJobs
    ) -> Iterable[HeldJobs]:
        """Send WORKING to one node after another until each job is known to one; return the jobs that stay held."""
        began_s = self._clock.now_s()
        left = list(held.ids)
        problem: DisqueError | None = None
        retries: dict[tuple[str, float], list[bytes]] = {}
        for member in members:
            asking, left = left, []
            for first in range(0, len(asking), JOBS_PER_CALL):
                if number not in self._batches:
                    return ()
                ids = asking[first : first + JOBS_PER_CALL]
                results = brokers.at(member.address).working_many(job_id.decode("ascii") for job_id in ids)
                for job_id, result in zip(ids, results, strict=True):
                    retry_s = self._retry_s(job_id, result)
                    if retry_s is not None:
                        retries.setdefault((member.id, retry_s), []).append(job_id)
                    elif not isinstance(result, JobAcknowledged):
                        left.append(job_id)
                failed = next((result for result in results if _is_failure(result)), None)
                if failed is not None:
                    left += asking[first + JOBS_PER_CALL :]
                    problem = failed
                    break
        renewed = [HeldJobs(node, ids, began_s + RENEW_SHARE * retry_s) for (node, retry_s), ids in retries.items()]
        return [*renewed, *self._unknown(held, left, problem)]

    def _retry_s(self, job_id: bytes, result: int | DisqueError) -> float | None:
        """Return the retry time in a reply to WORKING, infinity if no further WORKING helps, None without either."""
        match result:
            case int():
                return result or math.inf
            case TooLate():
                self._warn_too_late(job_id)
                return math.inf
            case _:
                return None

    def _unknown(self, held: HeldJobs, ids: Sequence[bytes], problem: DisqueError | None) -> Iterable[HeldJobs]:
        """Keep jobs that no node knew, except if all answered for the second time: then they no longer exist."""
        if not ids:
            return ()
        if problem is not None:
            self._warn(problem)
        elif held.are_missing:
            return ()
        return (HeldJobs(held.node, ids, self._clock.now_s() + RETRY_PAUSE_S, are_missing=problem is None),)

    def _warn_too_late(self, job_id: bytes) -> None:
        if not self._warned_too_late:
            self._warned_too_late = True
            LOG.warning(
                "cannot renew the lease because more than half of the job's ttl has passed; it may also be delivered "
                "to another consumer; further jobs are not logged job=%s",
                job_id.decode("ascii"),
            )


def _is_failure(result: int | DisqueError) -> TypeGuard[DisqueError]:
    return isinstance(result, DisqueError) and not isinstance(result, NoSuchJob | JobAcknowledged | TooLate)
