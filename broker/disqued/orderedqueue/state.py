"""The state of one queue and the verbs that change it: lease, give back, bury, end.

Commands (`adding`, `working`, `joining`, `moving`) call these verbs. Every verb adds what it causes to the effects of
the entry. Times are those of the entries: `now_ms` is the time of the last one.

A claim is the index of the entry that assigned the job. If an entry assigns several jobs, the later ones get the next
numbers: a claim is the greater of the index and the last claim plus one. So claims are unique and grow strictly in the
whole queue.

What an entry can do by itself is bounded: lives, leases and delays that end, and assignments. If more is due,
`unfinished` is set, and the next entry, TIME if there is no other, continues.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.fates.fate import DEAD, DONE, MOVED
from disqued.core.fates.fate import EXPIRED as EXPIRED_OUTCOME
from disqued.orderedqueue import effects as codes
from disqued.orderedqueue.consumers import Consumer, ServiceQueue
from disqued.orderedqueue.effects import Assigned, Effects, Ended, Move, Returned
from disqued.orderedqueue.job import DELAYED, LEASED, MOVING, READY, Job
from disqued.orderedqueue.keys import Keys
from disqued.orderedqueue.options import PAUSED_OUT, QueueOptions, Settings
from disqued.orderedqueue.records import LEAST_MOVED_S, Record, Records
from disqued.orderedqueue.timers import JobTimers
from disqued.orderedqueue.waiting import Waiting

MOST_EVENTS: Final = 4096
"""How many jobs one entry ends or gives back because of the time, at most."""
MOST_ASSIGNED: Final = 1024
"""How many jobs one entry assigns at most."""
NACKED: Final = 1
REDELIVERED: Final = 2
UNCOUNTED: Final = 3
"""How an attempt counts: as a NACK, as an additional delivery, or not at all."""
_SPREAD: Final = 201
_SPREAD_FIRST: Final = 900
_PERMILLE: Final = 1000
_SPREAD_BY_INDEX: Final = 7919
_SPREAD_BY_ATTEMPT: Final = 104_729
"""Back-off times differ by up to a tenth, by these numbers instead of by chance."""


class State:
    """The state of a queue."""

    def __init__(self, options: QueueOptions) -> None:
        self.options = options
        self.settings = Settings()
        self.paused: i64 = 0
        """The flags of the command PAUSE."""
        self.index: i64 = 0
        """The index of the last entry."""
        self.now_ms: i64 = 0
        """The time of the last entry."""
        self.last_claim: i64 = 0
        self.fence: i64 = 0
        """The last claim when the active consumer of a SINGLE queue became active: claims up to it are stale."""
        self.waiting = Waiting(single=options.single)
        self.service = ServiceQueue(single=options.single, prefetch=options.prefetch)
        self.service.timeout_ms = self.settings.consumer_timeout_ms
        self.timers = JobTimers(self.waiting.jobs)
        self.keys = Keys()
        self.records = Records()
        self.moving: dict[int, Job] = {}
        """Jobs on their way to other queues, in the order in which their moves began."""
        self.down: dict[bytes, bool] = {}
        """Nodes that are down. The values have no meaning."""
        self.leased: i64 = 0
        self.delayed: i64 = 0
        self.added: i64 = 0
        self.delivered: i64 = 0
        """Jobs added and assignments since the queue exists."""
        self.unfinished: bool = False
        """Whether more is due than one entry does."""

    @property
    def is_paused_out(self) -> bool:
        """Whether no job may be assigned."""
        return (self.paused | self.settings.pause) & PAUSED_OUT != 0

    def pass_time(self, effects: Effects) -> None:
        """Do what is due at the time of the entry."""
        now_ms = self.now_ms
        left: i64 = MOST_EVENTS
        while left > 0:
            job = self.timers.pop(now_ms)
            if job is None:
                break
            left -= 1
            if job.expires_ms <= now_ms:
                self.expire(job, effects)
            elif job.state == LEASED:
                self.give_back(job, REDELIVERED, 0, effects)
            else:
                self.ready(job)
        for line in (self.waiting.plain, self.waiting.grouped):
            if left > 0 and 0 < line.soonest_ms <= now_ms:
                expired = line.expired(now_ms, left)
                left -= len(expired)
                for index in expired:
                    job = self.waiting.find(index)
                    assert job is not None
                    self.expire(job, effects)
        self.unfinished = left == 0
        if 0 < self.service.check_ms <= now_ms:
            self.remove_overdue(effects)
        if self.keys.by_key:
            self.keys.forget(now_ms)
        if self.records.by_index:
            self.records.forget(now_ms)

    def due_ms(self) -> i64:
        """When something is due; 0 for never."""
        due_ms = self.timers.first_ms()
        for other in (self.waiting.plain.soonest_ms, self.waiting.grouped.soonest_ms, self.service.check_ms):
            if other > 0 and (due_ms == 0 or other < due_ms):
                due_ms = other
        if self.unfinished and (due_ms == 0 or due_ms > self.now_ms):
            due_ms = self.now_ms
        return due_ms

    def assign(self, effects: Effects) -> None:
        """Give waiting jobs to consumers, while there are both."""
        if self.waiting.count == 0 or self.is_paused_out:
            return
        service = self.service
        left: i64 = MOST_ASSIGNED
        while True:
            consumer = service.next()
            if consumer is None:
                return
            if left == 0:
                self.unfinished = True
                return
            left -= 1
            job = self.waiting.take()
            if job is None:
                return
            if job.expires_ms <= self.now_ms:
                self.waiting.insert(job)
                self.expire(job, effects)
            elif job.profile.retry_s == 0 and consumer.credit == 0:
                self.waiting.insert(job)  # its consumer must ask for it
                self.timers.arm(job)
                return
            else:
                self._lease(job, consumer, effects)

    def _lease(self, job: Job, consumer: Consumer, effects: Effects) -> None:
        """Give a job that was taken out of the waiting ones to the next consumer."""
        claim = self.index
        if claim <= self.last_claim:
            claim = self.last_claim + 1
        if claim <= job.claim:
            claim = job.claim + 1
        self.last_claim = claim
        job.claim = claim
        job.state = LEASED
        job.consumer = consumer
        self.leased += 1
        self.delivered += 1
        self.service.served(consumer, job.index, claim)
        retry_s = job.profile.retry_s
        job.until_ms = self.now_ms + retry_s * 1000 if retry_s > 0 else 0
        effects.add_assigned(Assigned(job.index, claim, consumer.name, job.until_ms, job.nacks, job.additional))
        if retry_s == 0:
            self.end(job, DONE, effects)
            return
        self.waiting.set_busy(job)
        self.timers.arm(job)

    def withdraw(self, job: Job) -> bytes:
        """Take a job out of where its state says that it is. Returns the name of the consumer that had it.

        The job then is in no place, and has an object of its own.
        """
        state = job.state
        name = b""
        if state == READY:
            self.waiting.remove(job)
            if job.packed:
                job.packed = False
                self.waiting.jobs[int(job.index)] = job
        elif state == LEASED:
            consumer = job.consumer
            assert consumer is not None
            name = consumer.name
            job.consumer = None
            self.leased -= 1
            self.waiting.set_free(job)
            consumer.seen_ms = self.now_ms
            self.service.released(consumer, job.index)
        elif state == DELAYED:
            self.delayed -= 1
            self.waiting.unhold(job)
        else:
            del self.moving[int(job.index)]
            job.move = None
        return name

    def end(self, job: Job, outcome: i64, effects: Effects, result: bytes | None = None, keep_s: i64 = 0) -> None:
        """End a job, whatever its state. Its record is kept for `keep_s` seconds at least."""
        index = job.index
        if job.state == READY and job.packed:
            self.waiting.remove(job)
            name = b""
        else:
            name = self.withdraw(job)
            del self.waiting.jobs[int(index)]
        profile = job.profile
        if profile.retain_s > keep_s:
            keep_s = profile.retain_s
        if outcome in (DEAD, MOVED):
            keep_s = max(keep_s, LEAST_MOVED_S, 2 * profile.retry_s)
        if keep_s > 0:
            record = Record(index, outcome, self.now_ms, job.claim, self.now_ms + keep_s * 1000)
            record.result = result
            self.records.add(record)
        self.keys.job_ended(index)
        self.waiting.profiles.release(profile)
        effects.add_ended(Ended(index, outcome, job.size, job.claim, name))

    def ready(self, job: Job) -> None:
        """Put a job that waits for nothing more at its place among the waiting ones."""
        self.withdraw(job)
        self.waiting.insert(job)
        self.timers.arm(job)

    def delay(self, job: Job, delay_ms: i64) -> None:
        """Have a job that is in no place wait for a time."""
        job.state = DELAYED
        job.until_ms = self.now_ms + delay_ms
        self.delayed += 1
        self.timers.arm(job)

    def give_back(self, job: Job, counting: i64, delay_ms: i64, effects: Effects) -> None:
        """Return a job that is leased, delayed or on its way to another queue. It is buried if it failed too often.

        Later jobs of a SINGLE queue, or of its group key, wait for the end of the delay.
        """
        if counting == NACKED:
            job.nacks += 1
        elif counting == REDELIVERED:
            job.additional += 1
        if counting != UNCOUNTED and self._is_last(job) and self.bury(job, codes.LIMIT, effects):
            return
        claim = job.claim
        name = self.withdraw(job)
        if name:
            effects.add_returned(Returned(job.index, claim, name))
        if delay_ms > 0:
            self.delay(job, delay_ms)
            self.waiting.hold(job)
        else:
            self.waiting.insert(job)
            self.timers.arm(job)

    def _is_last(self, job: Job) -> bool:
        """Whether the attempt that was just counted was the last one."""
        settings = self.settings
        if settings.limit == 0 or job.attempts < settings.limit:
            return False
        return settings.limit_is_exact or not job.profile.dead

    def backoff_ms(self, job: Job, left_ms: i64) -> i64:
        """How long a job waits after a NACK, whose attempt is not counted yet, by the setting `backoff`.

        At most three quarters of its remaining life, which is `left_ms`.
        """
        settings = self.settings
        if settings.backoff_min_ms == 0:
            return 0
        most_ms = settings.backoff_max_ms
        wait_ms = settings.backoff_min_ms
        attempts = job.attempts
        for _ in range(attempts):
            if wait_ms >= most_ms or settings.backoff_permille <= _PERMILLE:
                break
            wait_ms = wait_ms * settings.backoff_permille // _PERMILLE
        wait_ms = min(wait_ms, most_ms)
        spread: i64 = (job.index % _SPREAD * _SPREAD_BY_INDEX + attempts * _SPREAD_BY_ATTEMPT) % _SPREAD
        return min(wait_ms * (_SPREAD_FIRST + spread) // _PERMILLE, left_ms // 4 * 3)

    def expire(self, job: Job, effects: Effects) -> None:
        """The life of a job is over: end it, or make it a dead letter."""
        if self.settings.dead_expired and not job.profile.dead and self.bury(job, codes.EXPIRED, effects):
            return
        self.end(job, EXPIRED_OUTCOME, effects)

    def bury(self, job: Job, why: i64, effects: Effects) -> bool:
        """Begin the move of a job to the queue of dead letters; False if it is in that queue."""
        settings = self.settings
        if settings.drops_dead:
            self.end(job, DEAD, effects)
            return True
        target = settings.dead or self.options.name + b".dead"
        if target == self.options.name:
            return False
        self.begin_move(job, target, why, effects).dead_ttl_s = settings.dead_ttl_s
        return True

    def begin_move(self, job: Job, target: bytes, why: i64, effects: Effects) -> Move:
        """Put a job on its way to another queue."""
        move = Move(job.index, target, why, job.reason, self.now_ms)
        move.consumer = self.withdraw(job)
        move.nacks = job.nacks
        move.additional = job.additional
        move.claim = job.claim
        job.state = MOVING
        job.move = move
        job.due_ms = 0
        self.moving[int(job.index)] = job
        effects.add_move(move)
        return move

    def remove_consumer(self, consumer: Consumer, effects: Effects) -> None:
        """A consumer has left: return its jobs, and activate the next consumer of a SINGLE queue."""
        consumer.away_ms = 0
        for index in sorted(consumer.jobs):
            self.give_back(self.waiting.jobs[index], REDELIVERED, 0, effects)
        self.service.remove(consumer)
        effects.add_parted(consumer.name)
        self.activate(effects)

    def remove_overdue(self, effects: Effects) -> None:
        """Remove the consumers whose time is over."""
        overdue = self.service.overdue(self.now_ms)
        while overdue:
            for consumer in overdue:
                self.remove_consumer(consumer, effects)
            overdue = self.service.overdue(self.now_ms)

    def activate(self, effects: Effects) -> None:
        """Make the first consumer of a SINGLE queue the active one if none is."""
        if self.options.single:
            activated = self.service.activate(self.now_ms)
            if activated is not None:
                self.fence = self.last_claim
                effects.add_activated(activated.name)

    def find_record(self, index: i64) -> Record | None:
        """The record of a job that ended; None if there is none."""
        return self.records.by_index.get(int(index))
