"""The verbs that change the state, the flags and the wake time of a job.

`lifecycle.transitions` lists what each verb may do. Only these verbs assign `job.state` and `job.flags` of a registered
job. Each of them changes the job, its queue, its wake time and the memory count together, so a caller never leaves a
job half changed. The rules and their order are those of the Disque job state machine (README, "Implementation").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mypy_extensions import i64

from disqued.core.fates.fate import DEAD, DELETED, DONE, EXPIRED, MOVED, UNKNOWN
from disqued.core.jobs.job import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    BY_TIMER,
    DELAYED,
    DELIVERED,
    IN_RECLAIMABLE,
    INCOMPLETE,
    LEASED,
    MAX_COUNTER,
    NOBODY,
    NOT_DONE,
    POSTPONED,
    QUEUED,
    WAIT_REPL,
    Job,
)
from disqued.core.lifecycle.dropped import Dropped
from disqued.core.lifecycle.held import HeldJobs
from disqued.core.lifecycle.holding import Holding
from disqued.core.lifecycle.replicationcounts import ReplicationCounts
from disqued.core.lifecycle.times import (
    EXPIRY_GRACE_MS,
    JITTER_MS,
    SPENT_MS_PER_S,
    WILLQUEUE_LEAD_MS,
)
from disqued.core.queues.queue import PAUSED_OUT, Placement, Queue, QueueType
from disqued.core.queues.queues import Queues

_WITHOUT_WILLQUEUE: Final = 255 - BCAST_WILLQUEUE
_FIRST_QUEUEING: Final = 255 - BCAST_QUEUED
_NOT_LEASED: Final = 255 - LEASED - POSTPONED
_NO_LONGER_TAKEN: Final = 255 - LEASED - BY_TIMER - POSTPONED
_NOT_WAITING: Final = 255 - DELAYED - POSTPONED - LEASED
_ORIGINAL_FLAGS: Final = BCAST_QUEUED | BCAST_WILLQUEUE
"""The flags that a copy keeps: this node did not deliver the job."""

SILENT: Final = 0
"""Another node asked for the queueing, so no node has to be told."""
COUNT_DELIVERY: Final = 1
COUNT_NACK: Final = 2
UNCOUNTED: Final = 3
"""A job comes back without a failed attempt. Other nodes are told."""


def _is_child(job: Job) -> bool:
    """Whether a job has parents."""
    return job.extra is not None and job.extra.is_child


class ByCopies(Placement):
    """The placement of the Disque queue: a job is safe when as many nodes as it asks for have a copy."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        super().__init__(by_copies=True)
        self._lifecycle = lifecycle

    def place(
        self,
        session: Any,
        job: Job,
        timeout_ms: i64,
        now_ms: i64,
        *,
        confirmed: i64,
        external: bool,
        with_copies: bool = False,
    ) -> bool:
        """Place the job at once if no other node must keep it; otherwise wait for its copies."""
        lifecycle = self._lifecycle
        if external or job.repl > 1 or _is_child(job):
            lifecycle.events.copies_wanted(
                session, job, timeout_ms, confirmed=confirmed, external=external, with_copies=with_copies
            )
            return False
        lifecycle.admit(job, now_ms)
        return True


class Lifecycle(Holding):
    """The verbs that change the jobs in the tables of one node.

    It is also the release of Disque queues: a job comes back until it is acknowledged or expires.
    """

    def __init__(self, draw: Callable[[], float], resident: Callable[[], int] | None = None) -> None:
        super().__init__(draw, resident)
        self.queues = Queues(QueueType(b"jobs", ByCopies(self), self))
        self.held = HeldJobs(self.queues)

    def admit(self, job: Job, now_ms: i64) -> None:
        """Register a new local job that needs no copy on another node, and queue it unless it has a delay."""
        self._register(job)
        self.unplaced_jobs += 1
        self.plan(job, now_ms)
        self.place(job, now_ms)

    def await_copies(self, job: Job, now_ms: i64) -> None:
        """Register a new local job that is placed later, when other nodes have copies."""
        self._register(job)
        self.unplaced_jobs += 1
        self.plan(job, now_ms)
        self._arm(job)
        if job.is_held:
            self.held.note(job, None)

    def place(self, job: Job, now_ms: i64, counting: i64 = COUNT_DELIVERY) -> None:
        """Activate a job that has its copies, and queue it unless it has a delay. SILENT: no node must be told."""
        if job.state != WAIT_REPL:
            return
        self.unplaced_jobs -= 1
        job.state = ACTIVE
        job.confirmed = None
        self.journal.keep(job)
        if job.extra is not None and job.extra.is_child:
            self.plan(job, now_ms)  # its parents may have been done meanwhile
        if job.is_held:
            self._arm(job)
            self.held.note(job, self.make_queue(job.queue, now_ms))
        elif job.delay_s > 0:
            self._delay(job, now_ms)
            self._arm(job)
        else:
            self.enqueue(job, now_ms, counting)

    def place_elsewhere(self, job: Job) -> None:
        """Activate a job that has its copies, and that another holder has queued meanwhile."""
        if job.state != WAIT_REPL:
            return
        self.unplaced_jobs -= 1
        job.state = ACTIVE
        job.confirmed = None
        job.flags |= BCAST_QUEUED
        self.journal.keep(job)
        self._arm(job)
        if job.is_held:
            self.held.note(job, None)

    def keep_copy(self, job: Job, now_ms: i64) -> None:
        """Register a copy of another node's job as active. It is queued here if no other node queues it before."""
        job.flags = (job.flags | BCAST_QUEUED) & _ORIGINAL_FLAGS
        if job.retry_s > 0 and not job.is_held:
            job.flags |= BCAST_WILLQUEUE
            job.requeue_at_ms = now_ms + (job.delay_s + job.retry_s) * 1000 + self._jitter_ms()
        self._register(job)
        job.state = ACTIVE
        self.journal.keep(job)
        self._arm(job)
        if job.is_held:
            self.held.note(job, None)

    def keep_import(self, job: Job, now_ms: i64) -> None:
        """Register a job that another node gives away as active. It can be queued here without an announcement."""
        job.flags = job.flags & BCAST_WILLQUEUE
        job.requeue_at_ms = now_ms + job.retry_s * 1000
        self._register(job)
        job.state = ACTIVE
        self.journal.keep(job)
        self._arm(job)

    def keep_loaded(self, job: Job, now_ms: i64, *, stored: i64, controlled: bool, complete: bool) -> bool:
        """Register a job from disk as active, with the wake time that it would have. True: queue it now.

        A job that was never queued is queued when its delay is over, any other job after its retry time. An
        at-most-once job that may have been delivered is not queued again. `stored` is the state in the file. Only the
        file of a `controlled` shutdown says for certain which jobs were queued; the caller then queues those with
        `requeue_loaded`. `complete`: the file has all holders of the job.
        """
        retry_s = job.retry_s
        was_queued = controlled and stored == QUEUED
        job.flags &= _NOT_WAITING
        if retry_s > 0 and not complete:  # copies of at-most-once jobs are never queued, so nobody must learn their end
            job.flags |= INCOMPLETE
        due_ms: i64 = 0
        if job.delay_s > 0:
            due_ms = min(job.created_ms, now_ms) + job.delay_s * 1000
            if job.extra is not None and job.extra.is_child:  # its delay began later: when its parents were done
                due_ms = now_ms + job.delay_s * 1000
        if job.is_held:
            was_queued = False
        elif (
            job.delay_s > 0
            and job.flags & (BCAST_QUEUED | DELIVERED) == 0
            and (due_ms > now_ms or was_queued or (controlled and retry_s > 0))
        ):
            job.requeue_at_ms = max(due_ms, now_ms)
            self._delay(job, now_ms)
            was_queued = False
        elif retry_s > 0:
            job.flags |= BCAST_WILLQUEUE
            job.requeue_at_ms = max(due_ms, now_ms) + retry_s * 1000 + self._jitter_ms()
        elif was_queued and not job.flags & DELIVERED:
            job.requeue_at_ms = now_ms
        else:
            was_queued = False
        self._register(job)
        job.state = ACTIVE
        if job.is_held:
            self.held.note(job, self.make_queue(job.queue, now_ms))
        elif job.requeue_at_ms == 0:
            self.memory.allow_eviction(job)
        self._arm(job)
        return was_queued

    def requeue_loaded(self, job: Job, now_ms: i64, ask_at_ms: i64) -> None:
        """Queue a job that was queued when the last run ended. No node is told, and no delivery is counted.

        Another holder may have queued or finished the job meanwhile. If `ask_at_ms` is not 0, the holders are asked at
        that time, and the job is queued half a second later unless one objects.
        """
        if self.table.get(job.id) is not job:
            return
        if ask_at_ms == 0 or self.queues.takes_no_input(job.queue):
            self.enqueue(job, now_ms, SILENT)
            return
        job.flags = (job.flags & _FIRST_QUEUEING) | BCAST_WILLQUEUE
        self.requeue_at(job, ask_at_ms + WILLQUEUE_LEAD_MS)

    def keep_dummy(self, job: Job, now_ms: i64) -> None:
        """Register the acknowledgement of a job that this node does not have."""
        job.delivered = NOBODY
        self._register(job)
        job.state = ACKED
        self.acked_jobs += 1
        self.arm_collection(job, now_ms)
        self.memory.add_unknown(job)

    def enqueue(self, job: Job, now_ms: i64, counting: i64) -> bool:
        """Queue an active job; False when it must not be queued (again). `_count_queueing` explains `counting`.

        A job whose last attempt failed is not queued (`attempt_failed`), nor is one that was purged.
        """
        if self.queues.capped > 0 and job.state == ACTIVE:
            self.queues.lease_over(job)
        if job.state != ACTIVE or job.requeue_at_ms == 0:
            return False
        retry_s = job.retry_s
        flags = job.flags
        if counting != SILENT and flags & BCAST_QUEUED and self.events.attempt_failed(job, counting):
            return True
        if self.queues.purges.some and self.queues.purges.catches(job):
            self._arm(job)
            return False
        if retry_s > 0:
            if flags & LEASED:
                self.queues.count_lease_out(job)
            job.requeue_at_ms = now_ms + retry_s * 1000 + self._jitter_ms()
            job.flags = (flags & _NO_LONGER_TAKEN) | BCAST_WILLQUEUE
        elif flags & DELIVERED:
            return False
        else:
            job.requeue_at_ms = 0
            job.flags = flags & _NO_LONGER_TAKEN
        if flags & DELAYED:
            self._end_delay(job)
        job.state = QUEUED
        self._count_queueing(job, now_ms, counting)
        self._arm(job)
        queue = self.make_queue(job.queue, now_ms)
        queue.order.insert(job)
        queue.count_in(job)
        self.queued_jobs += 1
        queue.used_ms = now_ms
        queue.jobs_in += 1
        if queue.waiting > 0:
            self.offer(queue)
        if queue.patterns is not None and self.patterns.note(queue, now_ms):
            self.offer(queue)
        watcher = queue.watcher
        if watcher is not None and watcher.wanted and not watcher.listed:
            watcher.listed = True
            self.wanted.append(queue)
        return True

    def _count_queueing(self, job: Job, now_ms: i64, counting: i64) -> None:
        """Count a queueing and tell the other nodes that may hold the job.

        - SILENT counts nothing and tells nobody.
        - UNCOUNTED counts nothing.
        - COUNT_NACK counts a NACK.
        - COUNT_DELIVERY counts an additional delivery, unless the job is queued for the first time. The first queueing
          is only told when it comes so late that other holders are about to queue the job themselves, or when several
          nodes may have added the job.
        """
        if counting == COUNT_NACK:
            if job.nacks < MAX_COUNTER:
                job.nacks += 1
        elif counting == COUNT_DELIVERY and job.flags & BCAST_QUEUED:
            if job.additional_deliveries < MAX_COUNTER:
                job.additional_deliveries += 1
        elif counting != UNCOUNTED or not job.flags & BCAST_QUEUED:
            job.flags |= BCAST_QUEUED
            if job.delivered is None or counting == SILENT:
                return
            if not job.is_named and not _is_child(job) and not self._is_expected_elsewhere(job, now_ms):
                return
            counting = SILENT
        if job.delivered is not None:
            self.events.requeued(job, counting)

    def take(self, queue: Queue, now_ms: i64) -> Job | None:
        """Hand out the next job of a queue; None when the queue is empty or paused for output."""
        if queue.length == 0 or queue.pause & PAUSED_OUT:
            return None
        job = queue.order.pop()
        assert job is not None
        queue.count_out(job)
        self.queued_jobs -= 1
        queue.used_ms = now_ms
        queue.jobs_out += 1
        job.state = ACTIVE
        job.flags |= DELIVERED | LEASED
        if job.retry_s == 0:
            # Before the client gets it: a job that was delivered at most once must never come back.
            self.journal.forget(job)
            self.memory.allow_eviction(job)
            return job
        queue.leased += 1
        if job.requeue_at_ms - now_ms < job.retry_s * SPENT_MS_PER_S:
            self.postpone(job, now_ms)
        return job

    def dequeue(self, job: Job) -> bool:
        """Take a job out of its queue without delivering it; False if it was not queued."""
        if job.state != QUEUED:
            return False
        self._leave_queue(job)
        job.state = ACTIVE
        return True

    def _leave_queue(self, job: Job) -> None:
        queue = self.queues.get(job.queue)
        assert queue is not None
        queue.order.remove(job)
        queue.count_out(job)
        self.queued_jobs -= 1

    def end_lease(self, job: Job, *, still_in_flight: bool = False) -> None:
        """Another node queued the job: end the lease of a worker of this node, and the wait for the delay.

        `still_in_flight`: a worker has the job nevertheless, so it counts in the `inflight` of its queue.
        """
        if self.queues.capped > 0 and not still_in_flight:
            self.queues.lease_over(job)
        self.queues.count_lease_out(job)
        job.flags &= _NOT_LEASED
        self._end_delay(job)

    def requeue_at(self, job: Job, at_ms: i64) -> None:
        """Set the time at which an active job is queued, as another node or the caller decided."""
        job.requeue_at_ms = at_ms
        self._arm(job)

    def delay_until(self, job: Job, now_ms: i64, at_ms: i64) -> None:
        """Have a copy queued here for the first time when its delay is over; another node decided the delay.

        A job that waits for its parents is queued when they are done, or after its own delay from then on.
        """
        job.flags &= _FIRST_QUEUEING
        if job.is_held:
            self.held.note(job, self.make_queue(job.queue, now_ms))
            return
        self.queues.count_lease_out(job)
        self._delay(job, now_ms)
        self.requeue_at(job, at_ms)

    def postpone_until(self, job: Job, now_ms: i64, at_ms: i64, counting: i64, *, here: bool) -> bool:
        """Have a job that a worker gave back queued again at a time and not before; False if it is never queued again.

        `counting` is COUNT_NACK or UNCOUNTED. `here`: the worker gave it back to this node; copies on other nodes are
        queued a little later unless they hear that this node did.
        """
        if job.retry_s == 0 or job.requeue_at_ms == 0 or (job.state != ACTIVE and job.state != QUEUED):
            return False
        if self.queues.capped > 0:
            self.queues.lease_over(job)
        self.queues.count_lease_out(job)
        if job.state == QUEUED:
            self._leave_queue(job)
            job.state = ACTIVE
        if counting == COUNT_NACK and job.nacks < MAX_COUNTER:
            job.nacks += 1
        job.flags = (job.flags & _NO_LONGER_TAKEN) | BCAST_QUEUED | BCAST_WILLQUEUE | POSTPONED
        if here:
            self._delay(job, now_ms)
        else:
            self._end_delay(job)
            at_ms += JITTER_MS // 2 + self._jitter_ms()
        self.requeue_at(job, at_ms)
        return True

    def park(self, job: Job, now_ms: i64) -> None:
        """Have an unfinished job wait outside of its queue as if a worker had it: it is being moved.

        A job that waits for its parents needs nothing.
        """
        if job.is_held:
            return
        self.queues.count_lease_out(job)
        if job.state == QUEUED:
            self._leave_queue(job)
            job.state = ACTIVE
        job.flags = (job.flags & _NO_LONGER_TAKEN) | LEASED
        if job.retry_s > 0 and job.state == ACTIVE:
            self.make_queue(job.queue, now_ms).leased += 1
        self._end_delay(job)
        if job.requeue_at_ms == 0:
            job.requeue_at_ms = now_ms
        self.postpone(job, now_ms)

    def postpone(self, job: Job, now_ms: i64) -> None:
        """Start the retry time of an unfinished job again. Does nothing to a job that is never requeued."""
        if job.retry_s == 0 or job.requeue_at_ms == 0:
            return
        job.flags |= BCAST_WILLQUEUE
        at_ms: i64 = now_ms + job.retry_s * 1000 + self._jitter_ms()
        job.requeue_at_ms = max(at_ms, job.requeue_at_ms) if job.flags & POSTPONED else at_ms  # for a late WORKING
        self._arm(job)

    def acknowledge(self, job: Job, now_ms: i64, outcome: i64 = DONE, successor: bytes | None = None) -> bool:
        """Mark a job as done; False if it was. The caller answers the client that waits for its copies before.

        `outcome`: DEAD or MOVED if its successor takes its place, UNKNOWN if this node only knows that it ended.
        """
        if job.state == ACKED:
            return False
        if outcome != DONE:
            job.requeue_at_ms = NOT_DONE
        if self.watched or job.extra is not None or outcome != DONE:
            self._report_end(job, outcome, successor)
        if job.repl > 1:
            self.replication_counts.remove(i64(job.repl))
        if job.state == WAIT_REPL:
            self.unplaced_jobs -= 1
        else:
            self.journal.forget(job)
        if self.keys.until_done > 0:
            self.keys.end(job.id)
        if job.is_held:
            self.held.end(job)
        if job.state == QUEUED:
            self._leave_queue(job)
        elif job.flags & LEASED:
            self.queues.count_lease_out(job)
        if self.queues.capped > 0:
            self.queues.lease_over(job)
        self._end_delay(job)
        job.state = ACKED
        self.acked_jobs += 1
        job.confirmed = None
        job.gc_retry = 0
        self.arm_collection(job, now_ms)
        self.memory.allow_eviction(job)
        return True

    def _report_end(self, job: Job, outcome: i64, successor: bytes | None) -> None:
        """Raise `ended` if somebody wants to know how a job ends, or if its end must be remembered."""
        if outcome == UNKNOWN:
            return
        extra = job.extra
        if outcome == DONE and extra is not None and extra.dead:  # a dead letter that is acknowledged is discarded
            outcome = DELETED
            job.requeue_at_ms = NOT_DONE
        is_kept = (extra is not None and extra.retains) or outcome in (DEAD, MOVED)
        if is_kept or (self.watched and job.id in self.watched):
            self.events.ended(job, outcome, successor)

    def end(self, job: Job, outcome: i64, successor: bytes | None = None) -> None:
        """Forget a job in any state. It ends with this outcome, unless it was acknowledged before."""
        if job.state != ACKED:
            self._report_end(job, outcome, successor)
        self.drop(job)

    def give_back(self, job: Job, now_ms: i64, counting: i64) -> bool:
        """Queue a job of a Disque queue again."""
        return self.enqueue(job, now_ms, counting)

    def expire(self, job: Job) -> None:
        """Forget a job of a Disque queue, unless a room takes it over; each holder does so by itself."""
        if (job.state != ACTIVE and job.state != QUEUED) or not self.events.expiring(job):
            self.end(job, EXPIRED)

    def drop(self, job: Job) -> None:
        """Forget a job in any state. That says nothing about its end: other nodes may have it."""
        if job.state == WAIT_REPL:
            self.unplaced_jobs -= 1
            self.events.dropped_unplaced(job)
        elif job.state != ACKED:
            self.journal.forget(job)
        if self.keys.until_done > 0:
            self.keys.end(job.id)
        if job.is_held:
            self.held.end(job)
        self.timers.disarm(job)
        if self.queues.capped > 0:
            self.queues.lease_over(job, dropped=True)
        self.queues.count_lease_out(job)
        self._end_delay(job)
        if job.state == QUEUED:
            self._leave_queue(job)
        if job.state == ACKED:
            self.acked_jobs -= 1
            if job.is_named:
                self.events.named_job_ended(job)
        elif job.repl > 1:
            self.replication_counts.remove(i64(job.repl))
        if job.place >= IN_RECLAIMABLE:
            self.memory.forbid_eviction(job)
        self.memory.remove(job)
        self.table.remove(job)

    def drop_all(self) -> None:
        """Forget all jobs, keys and queues at once, without a record. No client may wait for a job.

        The timers of the jobs stay armed until they are freed.
        """
        names, queues = self.queues.take_all()
        self.dropped.append(Dropped(self.table.take_all(), self.keys.take_all(), names, queues))
        self.memory.forbid_all_evictions()
        self.patterns.forget_queues()
        self.ready.clear()
        self.wanted.clear()
        self.unplaced_jobs = 0
        self.acked_jobs = 0
        self.queued_jobs = 0
        self.held.clear()
        self.replication_counts = ReplicationCounts()

    def wake(self, job: Job, now_ms: i64) -> bool:
        """Do what is due for a job: expire, announce or requeue it. True if the job expired."""
        if self.dropped and self.table.get(job.id) is not job:
            return False
        if job.expire_at_s * 1000 + EXPIRY_GRACE_MS <= now_ms:
            self.queues.type_of(job.queue).release.expire(job)
            if self.table.get(job.id) is not job:
                return True
            if job.state != ACKED:  # a room took it over; it is asked again, in case it gave up
                self.timers.arm(job, now_ms + EXPIRY_GRACE_MS)
            return False
        if job.state == ACTIVE or job.state == QUEUED:
            if job.flags & BCAST_WILLQUEUE and job.requeue_at_ms - WILLQUEUE_LEAD_MS <= now_ms:
                self.announce(job)
            if job.requeue_at_ms != 0 and job.requeue_at_ms <= now_ms:
                self.requeue(job, now_ms)
                if self.table.get(job.id) is not job:  # its last attempt failed, and a dead letter has taken its place
                    return False
        elif job.state == ACKED and job.delivered is not None:
            self.arm_collection(job, now_ms)
            self.events.acknowledged(job)
            return False
        if job.timer_next is None:
            self._arm(job)
        return False

    def announce(self, job: Job) -> None:
        """Tell the other nodes that may hold an active job that it will be queued here in half a second."""
        job.flags &= _WITHOUT_WILLQUEUE
        if job.state == ACTIVE and job.delivered is not None:
            self.events.about_to_requeue(job)

    def requeue(self, job: Job, now_ms: i64) -> None:
        """Queue an active job whose time has come; a job that is queued already waits for another retry time."""
        if job.state == QUEUED:
            self.postpone(job, now_ms)
            return
        was_queued = job.flags & BCAST_QUEUED != 0
        if job.retry_s > 0 and self.queues.takes_no_input(job.queue):
            self.postpone(job, now_ms)
        elif self.queues.type_of(job.queue).release.give_back(
            job, now_ms, UNCOUNTED if job.flags & POSTPONED else COUNT_DELIVERY
        ):
            if job.state == QUEUED:
                job.flags |= BY_TIMER
                if was_queued:
                    self.requeued_by_timer.value += 1
        else:
            job.requeue_at_ms = 0
