"""The verbs that change the state, the flags and the wake time of a job.

`lifecycle.transitions` lists what each verb may do. Only these verbs assign `job.state` and `job.flags` of a registered
job. Each of them changes the job, its queue, its wake time and the memory count together, so a caller never leaves a
job half changed. The rules and their order are those of the Disque job state machine (README, "Implementation").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disqued.core.clients.session import Session
from disqued.core.jobs.job import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    BY_TIMER,
    DELAYED,
    DELIVERED,
    IN_HAND,
    IN_RECLAIMABLE,
    MAX_COUNTER,
    NOBODY,
    QUEUED,
    WAIT_REPL,
    Job,
)
from disqued.core.jobs.table import JobTable
from disqued.core.lifecycle.events import Events
from disqued.core.lifecycle.journal import Journal
from disqued.core.lifecycle.keys import Keys
from disqued.core.lifecycle.replicationcounts import Levels
from disqued.core.memory.accounting import Memory, queue_bytes
from disqued.core.queues.queue import PAUSED_IN, PAUSED_OUT, Placement, Queue, QueueType, Release
from disqued.core.queues.queues import Queues
from disqued.core.telemetry.counter import Count
from disqued.core.timers.wheel import NEAR_MS, TimerWheel

WILLQUEUE_LEAD_MS: Final = 500
JITTER_MS: Final = 500
"""Requeue times are spread over this width, so that the holders of a job do not act at once."""
EXPIRY_GRACE_MS: Final = 1000
"""Expiry is kept in whole seconds, rounded down: so much later a job has had all of its time, wherever in a second it
was created. (The original ends jobs that wake for another reason up to a second early.)"""
COLLECTION_MS: Final = 1000
MAX_COLLECTION_MS: Final = 180_000
"""How long until the holders of an acknowledged job are asked again: twice as long after each attempt."""
MAX_COLLECTIONS: Final = 10
"""Attempts beyond are not counted."""
_CHANCES: Final = 1 << 31
"""Shifts come from a linear congruential generator of this modulus, seeded once: every queueing needs one."""

SPENT_MS_PER_S: Final = 875
"""A job that waited for more than an eighth of its retry time gets all of it anew when a worker takes it, so that it
does not come back while the worker has hardly begun. Jobs that waited less keep their timers, which costs nothing."""

_WITHOUT_WILLQUEUE: Final = 255 - BCAST_WILLQUEUE
_FIRST_QUEUEING: Final = 255 - BCAST_QUEUED
_NOT_IN_HAND: Final = 255 - IN_HAND
_NO_LONGER_TAKEN: Final = 255 - IN_HAND - BY_TIMER
_NOT_DELAYED: Final = 255 - DELAYED
_ORIGINAL_FLAGS: Final = BCAST_QUEUED | BCAST_WILLQUEUE
"""What the flags of a copy may be: it was not delivered here."""

SILENT: Final = 0
"""Another node asked for the queueing: nobody has to be told."""
COUNT_DELIVERY: Final = 1
COUNT_NACK: Final = 2


class ByCopies(Placement):
    """The placement of the Disque queue: a job is safe when as many nodes as it asks for have a copy."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        super().__init__(by_copies=True)
        self._lifecycle = lifecycle

    def place(
        self, session: Session, job: Job, timeout_ms: i64, now_ms: i64, *, asynchronous: bool, external: bool
    ) -> bool:
        """Place the job at once if no other node has to keep it; otherwise have copies made first."""
        lifecycle = self._lifecycle
        if external or job.repl > 1:
            lifecycle.events.copies_wanted(session, job, timeout_ms, asynchronous=asynchronous, external=external)
            return False
        lifecycle.admit(job, now_ms)
        return True


class Lifecycle(Release):
    """The jobs and queues of one node and the verbs that change them.

    It is also the release of Disque queues: a job comes back until it is acknowledged or expires.
    """

    def __init__(self, draw: Callable[[], float], resident: Callable[[], int] | None = None) -> None:
        self._chance: i64 = int(draw() * _CHANCES)
        self.table = JobTable()
        self.queues = Queues(QueueType(b"jobs", ByCopies(self), self))
        self.timers = TimerWheel(int(draw() * NEAR_MS))
        self.memory = Memory(resident)
        self.keys = Keys(self.timers, self.memory)
        """Those under which jobs were added here lately."""
        self.journal = Journal()
        self.ready: list[Queue] = []
        """Queues whose waiting clients can be served."""
        self.wanted: list[Queue] = []
        """Queues with jobs that other nodes asked for."""
        self.events = Events()
        self.acked_jobs: i64 = 0
        self.queued_jobs: i64 = 0
        """In all queues together."""
        self.delayed_jobs: i64 = 0
        """Those that wait here for the end of their delay."""
        self.requeued_by_timer = Count()
        """How often a job that had been queued before was queued again because its retry time was over."""
        self.levels = Levels()
        """Of all jobs that are not acknowledged."""

    def _jitter_ms(self) -> i64:
        """A random shift of up to a quarter of a second either way."""
        self._chance = (self._chance * 1103515245 + 12345) & (_CHANCES - 1)
        return (self._chance >> 8) % JITTER_MS - JITTER_MS // 2

    def _arm(self, job: Job) -> None:
        """Set the wake time that follows from the job's state; `_arm_collection` does for acknowledged ones."""
        awake_ms: i64 = job.expire_at_s * 1000 + EXPIRY_GRACE_MS
        requeue_at_ms = job.requeue_at_ms
        if requeue_at_ms != 0 and (job.state == ACTIVE or job.state == QUEUED):
            if job.flags & BCAST_WILLQUEUE:
                requeue_at_ms -= WILLQUEUE_LEAD_MS
            if requeue_at_ms < awake_ms:
                awake_ms = requeue_at_ms
        self.timers.arm(job, awake_ms)

    def arm_collection(self, job: Job, now_ms: i64) -> None:
        """Set when to ask anew whether all holders of an acknowledged job know: later with each attempt."""
        awake_ms: i64 = job.expire_at_s * 1000 + EXPIRY_GRACE_MS
        attempts = i64(job.gc_retry)
        period_ms: i64 = min(COLLECTION_MS << attempts, MAX_COLLECTION_MS)
        if job.delivered is not None and now_ms + period_ms < awake_ms:
            awake_ms = now_ms + period_ms + self._jitter_ms()
        self.timers.arm(job, awake_ms)

    def _register(self, job: Job) -> None:
        self.table.add(job)
        self.memory.add(job)
        if job.repl > 1:
            self.levels.add(i64(job.repl))

    def admit(self, job: Job, now_ms: i64) -> None:
        """Register a new local job that waits for no other node's copy, and queue it unless it is delayed."""
        self._register(job)
        self.plan(job, now_ms)
        self.place(job, now_ms)

    def plan(self, job: Job, now_ms: i64) -> None:
        """Set when a new local job is queued: after its delay, or again after its retry time."""
        job.requeue_at_ms = now_ms + (job.delay_s if job.delay_s > 0 else job.retry_s) * 1000

    def await_copies(self, job: Job, now_ms: i64) -> None:
        """Register a new local job that is not placed before other nodes have their copies."""
        self._register(job)
        self.plan(job, now_ms)
        self._arm(job)

    def place(self, job: Job, now_ms: i64) -> None:
        """The job has its copies: it becomes active, and is queued unless it is delayed."""
        if job.state != WAIT_REPL:
            return
        job.state = ACTIVE
        job.confirmed = None
        self.journal.keep(job)
        if job.delay_s > 0:
            self._delay(job)
            self._arm(job)
        else:
            self.enqueue(job, now_ms, COUNT_DELIVERY)

    def _delay(self, job: Job) -> None:
        if not job.flags & DELAYED:
            job.flags |= DELAYED
            self.delayed_jobs += 1

    def _end_delay(self, job: Job) -> None:
        if job.flags & DELAYED:
            job.flags &= _NOT_DELAYED
            self.delayed_jobs -= 1

    def keep_copy(self, job: Job, now_ms: i64) -> None:
        """Register a copy of another node's job: active, to be queued here if nobody does before."""
        job.flags = (job.flags | BCAST_QUEUED) & _ORIGINAL_FLAGS
        if job.retry_s > 0:
            job.flags |= BCAST_WILLQUEUE
            job.requeue_at_ms = now_ms + (job.delay_s + job.retry_s) * 1000 + self._jitter_ms()
        self._register(job)
        job.state = ACTIVE
        self.journal.keep(job)
        self._arm(job)

    def keep_import(self, job: Job, now_ms: i64) -> None:
        """Register a job that another node had queued and gives away: active, and free to be queued here silently."""
        job.flags = job.flags & BCAST_WILLQUEUE
        job.requeue_at_ms = now_ms + job.retry_s * 1000
        self._register(job)
        job.state = ACTIVE
        self.journal.keep(job)
        self._arm(job)

    def keep_loaded(self, job: Job, now_ms: i64, *, stored: i64, handed_on: bool) -> bool:
        """Register a job that was found on disk, where its state was `stored`: it is active, and due as it would be.

        It is queued when its delay is over if it never was, and else after its retry time; what may have been delivered
        at most once is not queued again. A file that the last run `handed_on` says for certain what was queued and
        what was not. True: this is a job that is to be queued now (`requeue_loaded`).
        """
        retry_s = job.retry_s
        was_queued = handed_on and stored == QUEUED
        job.flags &= _NOT_DELAYED
        due_ms: i64 = 0
        if job.delay_s > 0:
            due_ms = min(job.ctime // 1_000_000, now_ms) + job.delay_s * 1000
        if (
            job.delay_s > 0
            and job.flags & (BCAST_QUEUED | DELIVERED) == 0
            and (due_ms > now_ms or was_queued or (handed_on and retry_s > 0))
        ):
            job.requeue_at_ms = max(due_ms, now_ms)
            self._delay(job)
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
        if job.requeue_at_ms == 0:
            self.memory.allow_eviction(job)
        self._arm(job)
        return was_queued

    def requeue_loaded(self, job: Job, now_ms: i64, ask_at_ms: i64) -> None:
        """Queue a job that was in its queue when the last run ended: nobody is told, and no delivery is counted.

        Other holders may have queued or finished it meanwhile. They are asked at `ask_at_ms`, if that is not 0, and the
        job is queued half a second later unless one says so.
        """
        if self.table.get(job.id) is not job:
            return
        queue = self.queues.get(job.queue)
        if ask_at_ms == 0 or (queue is not None and queue.pause & PAUSED_IN):
            self.enqueue(job, now_ms, SILENT)
            return
        job.flags = (job.flags & _FIRST_QUEUEING) | BCAST_WILLQUEUE
        self.requeue_at(job, ask_at_ms + WILLQUEUE_LEAD_MS)

    def keep_dummy(self, job: Job, now_ms: i64) -> None:
        """Register the acknowledgement of a job that is not known here."""
        job.delivered = NOBODY
        self._register(job)
        job.state = ACKED
        self.acked_jobs += 1
        self.arm_collection(job, now_ms)
        self.memory.allow_eviction(job)

    def enqueue(self, job: Job, now_ms: i64, counting: i64) -> bool:
        """Queue an active job; False when it must not be queued (again). `_count_queueing` explains `counting`."""
        if job.state != ACTIVE or job.requeue_at_ms == 0:
            return False
        retry_s = job.retry_s
        flags = job.flags
        if retry_s > 0:
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
        queue = self.queues.get(job.queue)
        if queue is None:
            queue = self.make_queue(job.queue, now_ms)
        queue.insert(job)
        self.queued_jobs += 1
        queue.used_ms = now_ms
        queue.jobs_in += 1
        if queue.waiting > 0:
            self.offer(queue)
        if queue.wanted and not queue.sought:
            queue.sought = True
            self.wanted.append(queue)
        return True

    def _count_queueing(self, job: Job, now_ms: i64, counting: i64) -> None:
        """Count a queueing and tell the other nodes that may hold the job.

        - SILENT counts nothing and tells nobody.
        - COUNT_NACK counts a NACK.
        - COUNT_DELIVERY counts an additional delivery, unless the job is queued for the first time. The first queueing
          is only told when it comes so late that other holders are about to queue the job themselves.
        """
        if counting == COUNT_NACK:
            if job.nacks < MAX_COUNTER:
                job.nacks += 1
        elif counting == COUNT_DELIVERY and job.flags & BCAST_QUEUED:
            if job.additional_deliveries < MAX_COUNTER:
                job.additional_deliveries += 1
        else:
            job.flags |= BCAST_QUEUED
            if counting == SILENT or job.delivered is None or not self._is_expected_elsewhere(job, now_ms):
                return
            counting = SILENT
        if job.delivered is not None:
            self.events.requeued(job, counting)

    def _is_expected_elsewhere(self, job: Job, now_ms: i64) -> bool:
        """Whether a new job is queued so late, its queue was paused, that other holders are about to queue it."""
        expected_ms: i64 = job.ctime // 1_000_000 + (job.delay_s + job.retry_s) * 1000
        return now_ms + WILLQUEUE_LEAD_MS + JITTER_MS // 2 >= expected_ms

    def offer(self, queue: Queue) -> None:
        """Have the clients that wait for this queue served, if jobs may leave it."""
        if not queue.ready and queue.length > 0 and not queue.pause & PAUSED_OUT:
            queue.ready = True
            self.ready.append(queue)

    def take(self, queue: Queue, now_ms: i64) -> Job | None:
        """Hand out the oldest job of a queue that is not paused in output."""
        if queue.length == 0 or queue.pause & PAUSED_OUT:
            return None
        job = queue.oldest()
        assert job is not None
        queue.remove(job)
        self.queued_jobs -= 1
        queue.used_ms = now_ms
        queue.jobs_out += 1
        job.state = ACTIVE
        job.flags |= DELIVERED | IN_HAND
        if job.retry_s == 0:
            # Before the client gets it: a job that was delivered at most once must never come back.
            self.journal.forget(job)
            self.memory.allow_eviction(job)
        elif job.requeue_at_ms - now_ms < job.retry_s * SPENT_MS_PER_S:
            self.postpone(job, now_ms)
        return job

    def dequeue(self, job: Job) -> bool:
        """Take a job out of its queue without delivering it; False when it was not queued."""
        if job.state != QUEUED:
            return False
        self._leave_queue(job)
        job.state = ACTIVE
        return True

    def _leave_queue(self, job: Job) -> None:
        queue = self.queues.get(job.queue)
        assert queue is not None
        queue.remove(job)
        self.queued_jobs -= 1

    def is_in_hand(self, job: Job, now_ms: i64) -> bool:
        """Whether a worker of this node may be at the job, and this node will see to it when its time is over."""
        return job.state == ACTIVE and job.flags & IN_HAND != 0 and job.requeue_at_ms - now_ms > WILLQUEUE_LEAD_MS

    def let_go(self, job: Job) -> None:
        """Another node queued the job: whoever was at it here is given up, and it does not wait here for its delay."""
        job.flags &= _NOT_IN_HAND
        self._end_delay(job)

    def requeue_at(self, job: Job, at_ms: i64) -> None:
        """Have an active job queued at a time that somebody else decided."""
        job.requeue_at_ms = at_ms
        self._arm(job)

    def delay_until(self, job: Job, at_ms: i64) -> None:
        """Have a copy queued here for the first time when its delay, which another node decided, is over."""
        job.flags &= _FIRST_QUEUEING
        self._delay(job)
        self.requeue_at(job, at_ms)

    def postpone(self, job: Job, now_ms: i64) -> None:
        """Start the time to the next requeueing anew; nothing happens to jobs that are not requeued."""
        if job.retry_s == 0 or job.requeue_at_ms == 0:
            return
        job.flags |= BCAST_WILLQUEUE
        job.requeue_at_ms = now_ms + job.retry_s * 1000 + self._jitter_ms()
        self._arm(job)

    def acknowledge(self, job: Job, now_ms: i64) -> bool:
        """The job is done; False when that was known. Who waits for its copies has to be answered before."""
        if job.state == ACKED:
            return False
        if job.repl > 1:
            self.levels.remove(i64(job.repl))
        if job.state != WAIT_REPL:
            self.journal.forget(job)
        if job.state == QUEUED:
            self._leave_queue(job)
        self._end_delay(job)
        job.state = ACKED
        self.acked_jobs += 1
        job.confirmed = None
        job.gc_retry = 0
        self.arm_collection(job, now_ms)
        self.memory.allow_eviction(job)
        return True

    def give_back(self, job: Job, now_ms: i64, counting: i64) -> bool:
        """Queue a job of a Disque queue again."""
        return self.enqueue(job, now_ms, counting)

    def expire(self, job: Job) -> None:
        """Forget a job of a Disque queue; each holder does so by itself."""
        self.drop(job)

    def drop(self, job: Job) -> None:
        """Forget a job, whatever its state."""
        if job.state == WAIT_REPL:
            self.events.dropped_unplaced(job)
        elif job.state != ACKED:
            self.journal.forget(job)
        self.timers.disarm(job)
        self._end_delay(job)
        if job.state == QUEUED:
            self._leave_queue(job)
        if job.state == ACKED:
            self.acked_jobs -= 1
        elif job.repl > 1:
            self.levels.remove(i64(job.repl))
        if job.place == IN_RECLAIMABLE:
            self.memory.forbid_eviction(job)
        self.memory.remove(job)
        self.table.remove(job)

    def wake(self, job: Job, now_ms: i64) -> bool:
        """Do what is due: expire, announce, requeue. True when the job's life is over."""
        if job.expire_at_s * 1000 + EXPIRY_GRACE_MS <= now_ms:
            self.queues.type_of(job.queue).release.expire(job)
            return True
        if job.state == ACTIVE or job.state == QUEUED:
            if job.flags & BCAST_WILLQUEUE and job.requeue_at_ms - WILLQUEUE_LEAD_MS <= now_ms:
                self.announce(job)
            if job.requeue_at_ms != 0 and job.requeue_at_ms <= now_ms:
                self.requeue(job, now_ms)
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
        queue = self.queues.get(job.queue)
        was_queued = job.flags & BCAST_QUEUED != 0
        if job.retry_s > 0 and queue is not None and queue.pause & PAUSED_IN:
            self.postpone(job, now_ms)
        elif self.queues.type_of(job.queue).release.give_back(job, now_ms, COUNT_DELIVERY):
            job.flags |= BY_TIMER
            if was_queued:
                self.requeued_by_timer.value += 1
        else:
            job.requeue_at_ms = 0

    def make_queue(self, name: bytes, now_ms: i64) -> Queue:
        """The queue of that name, made when missing."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues.get_or_make(name, now_ms)
            self.memory.used_bytes += queue_bytes(name)
        return queue

    def pause(self, name: bytes, wanted: i64, now_ms: i64) -> None:
        """Replace the pause of a queue; one that is not paused is not made for that."""
        queue = self.queues.get(name)
        if queue is None:
            if wanted == 0:
                return
            queue = self.make_queue(name, now_ms)
        if queue.pause != wanted:
            queue.pause = wanted
            self.journal.paused(queue)
        if wanted & PAUSED_OUT:
            return
        if queue.waiting > 0:
            self.offer(queue)
        if queue.wanted and queue.length > 0 and not queue.sought:
            queue.sought = True
            self.wanted.append(queue)

    def remove_queue(self, queue: Queue) -> None:
        """Forget an empty queue that nobody waits for."""
        assert queue.length == 0
        assert queue.waiting == 0
        self.events.queue_gone(queue)
        self.queues.remove(queue)
        self.memory.used_bytes -= queue_bytes(queue.name)
