"""Keeping jobs leased while Spark works on them: a thread that says WORKING for all that is held.

A job goes back to its queue when its retry time passes without a word. GETJOB does not tell that time, WORKING does: so
the first WORKING follows the lease at once, and the next ones after a third of the retry time, which leaves two more
attempts. The thread has its own connections, never raises into Spark, and says in the log what it could not do.
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
from pyspark_disque.clock import TRY_AGAIN_S, Clock
from pyspark_disque.intake import SILENCE_S, best_first
from pyspark_disque.ledger import Lease
from pyspark_disque.options import Options

LOG: Final = logging.getLogger("pyspark_disque")
RENEW_SHARE: Final = 1 / 3
LONGEST_WAIT_S: Final = 60.0
SLICE: Final = 128
"""So many are renewed before it is looked whether they are still held, and whether the node still answers."""
COMPLAIN_EVERY_S: Final = 30.0


class Held(NamedTuple):
    """A job in hand: the node that knows it, when to renew its lease, whether no node knew it the last time."""

    node: str
    due_s: float
    is_missing: bool = False


class Leases:
    """The jobs that are held. Any thread may call `hold`, `release` and `close`; the first `hold` starts ours."""

    def __init__(self, options: Options, clock: Clock) -> None:
        self._options = dataclasses.replace(options, timeout_s=min(options.timeout_s, SILENCE_S))
        self._clock = clock
        self._lock = threading.Lock()
        self._held: dict[str, Held] = {}
        self._changed = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._complained_s = -math.inf
        self._warned = False

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, leases: Iterable[Lease]) -> None:
        """Keep these from now on."""
        now_s = self._clock.now_s()
        with self._lock:
            self._held.update((lease.id, Held(lease.node, now_s)) for lease in leases)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="disque-leases", daemon=True)
            self._thread.start()
        self._changed.set()

    def release(self, ids: Iterable[str]) -> None:
        """These are finished."""
        with self._lock:
            for job_id in ids:
                self._held.pop(job_id, None)

    def close(self) -> None:
        """Let go of all. They come back to their queues after their retry time."""
        self._closed = True
        self._changed.set()
        if self._thread is not None:
            self._thread.join(SILENCE_S)

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        with Brokers(self._options) as brokers:
            while not self._closed:
                self._changed.clear()
                try:
                    self._renew(brokers)
                except Exception as error:  # noqa: BLE001 - whatever it is, the leases have to be tried again
                    self._complain(error)
                    self._changed.wait(1.0)
                self._changed.wait(self._wait_s())

    def _wait_s(self) -> float:
        """How long nothing is due."""
        with self._lock:
            due_s = min((held.due_s for held in self._held.values()), default=math.inf)
        return min(LONGEST_WAIT_S, max(0.0, due_s - self._clock.now_s()))

    def _complain(self, error: Exception) -> None:
        now_s = self._clock.now_s()
        if now_s - self._complained_s >= COMPLAIN_EVERY_S:
            self._complained_s = now_s
            LOG.warning("leases of %d jobs can not be renewed, it is tried again: %s", len(self), error)

    def _renew(self, brokers: Brokers) -> None:
        now_s = self._clock.now_s()
        by_node: dict[str, list[str]] = {}
        with self._lock:
            for job_id, held in self._held.items():
                if held.due_s <= now_s:
                    by_node.setdefault(held.node, []).append(job_id)
        members = brokers.members() if by_node else ()
        for node, ids in by_node.items():
            self._renew_group(brokers, best_first(members, node), ids)

    def _renew_group(self, brokers: Brokers, members: Sequence[Member], ids: Sequence[str]) -> None:
        """Ask one node after the other until each job is known to one."""
        left = list(ids)
        problem: DisqueError | None = None
        for member in members:
            asking, left = left, []
            for first in range(0, len(asking), SLICE):
                ids = [job_id for job_id in asking[first : first + SLICE] if job_id in self._held]
                results = brokers.at(member.address).working_many(ids)
                left += self._note(member.id, dict(zip(ids, results, strict=True)))
                failed = next((result for result in results if _is_no_answer(result)), None)
                if failed is not None:
                    left += asking[first + SLICE :]
                    problem = failed
                    break
        self._not_known(left, problem)

    def _note(self, node: str, results: Mapping[str, int | DisqueError]) -> list[str]:
        """Take in what a node said to WORKING; the jobs for which another one has to be asked."""
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
        self._set_due({job_id: Held(node, due) for job_id, due in due_s.items()})
        self.release(finished)
        return unknown

    def _set_due(self, changed: Mapping[str, Held]) -> None:
        """Change what is still held."""
        with self._lock:
            self._held.update((job_id, held) for job_id, held in changed.items() if job_id in self._held)

    def _not_known(self, ids: Sequence[str], problem: DisqueError | None) -> None:
        """What no node knows twice, when all answered, needs no lease: it is finished, deleted or expired."""
        if problem is not None and ids:
            self._complain(problem)
        due_s = self._clock.now_s() + TRY_AGAIN_S
        with self._lock:
            held = {job_id: self._held[job_id] for job_id in ids if job_id in self._held}
        gone = [job_id for job_id, lease in held.items() if problem is None and lease.is_missing]
        self.release(gone)
        self._set_due({job_id: Held(lease.node, due_s, problem is None) for job_id, lease in held.items()})

    def _warn_too_late(self, job_id: str) -> None:
        if not self._warned:
            self._warned = True
            LOG.warning(
                "more than half of the life of job %s is over: it can not be kept leased any longer and may be "
                "delivered to somebody else too. Others like it are not named",
                job_id,
            )


def _is_no_answer(result: int | DisqueError) -> TypeGuard[DisqueError]:
    return isinstance(result, DisqueError) and not isinstance(result, NoSuchJob | JobAcknowledged | TooLate)
