"""Dead letters: jobs that failed too often, that a worker rejected, or whose life ended unacknowledged.

The settings of a queue say when a job is dead and where it goes (`core.queues.settings`). Attempts are the NACKs and
the additional deliveries of a job. A dead letter that fails again has no limit, unless one is set for its queue by
name: a pattern such as `*` makes no dead letters of dead letters.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.fates import fate
from disqued.core.jobs.attributes import REASON
from disqued.core.jobs.job import DELIVERED, MAX_COUNTER, QUEUED, Job
from disqued.core.lifecycle.lifecycle import COUNT_DELIVERY, COUNT_NACK
from disqued.core.queues.settings import DEFAULT_DEAD_TTL_S, NONE, QueueSettings, dead_queue
from disqued.core.runtime.state import NodeState
from disqued.core.timers.alarm import Alarm
from disqued.moves.counters import DEAD_BY, EXPIRED, LIMIT, PARENT, REJECTED
from disqued.moves.move import Moving
from disqued.moves.successor import make
from disqued.placing.homes import live_holders

TURN_MS: Final = 2500
"""The holders of a job whose life ends make it a dead letter in the order of their scores, one after the other, unless
one before them did."""


@mypyc_attr(acyclic=True)
class Expired(Alarm):
    """A job whose life is over, and which another holder should move first."""

    def __init__(self, letters: DeadLetters, job: Job) -> None:
        super().__init__()
        self._letters = letters
        self.job = job

    def ring(self, state: NodeState) -> None:
        """Move the job, unless another holder did."""
        del state
        self._letters.move_expired(self)


class DeadLetters:
    """Makes the dead letters of one node."""

    def __init__(self, state: NodeState, moving: Moving) -> None:
        self._state = state
        self._moving = moving
        self._expired: dict[bytes, Expired] = {}
        """Jobs whose lives are over and that wait for another holder, by ID."""

    def attempt_failed(self, job: Job, counting: i64) -> bool:
        """Count an attempt that is over if it was the last one, and move the job; False if it may be queued again."""
        if job.id in self._moving:
            return True
        if counting not in (COUNT_NACK, COUNT_DELIVERY) or job.retry_s == 0:
            return False
        settings = self._state.lifecycle.queues.settings_of(job.queue)
        if settings is None or not _is_last(job, settings, 1) or _is_final(job, settings):
            return False
        if counting == COUNT_NACK:
            job.nacks = min(job.nacks + 1, MAX_COUNTER)
        else:
            job.additional_deliveries = min(job.additional_deliveries + 1, MAX_COUNTER)
        return self._bury(job, settings, LIMIT)

    def failed_elsewhere(self, job: Job) -> None:
        """Move a job that a node which makes no dead letters queued again, once too often; as the first holder."""
        settings = self._state.lifecycle.queues.settings_of(job.queue)
        if settings is None or job.retry_s == 0 or job.id in self._moving:
            return
        if not _is_last(job, settings, 0) or _is_final(job, settings):
            return
        if live_holders(self._state, job)[0] == self._state.view.node_id:
            self._state.lifecycle.dequeue(job)  # the move of a job that is not queued here takes it out of other queues
            self._bury(job, settings, LIMIT)

    def rejected(self, job: Job) -> bool:
        """Move a job that a worker rejected."""
        if job.id in self._moving:
            return True
        settings = self._state.lifecycle.queues.settings_of(job.queue)
        if _is_final(job, settings):
            return False
        job.nacks = min(job.nacks + 1, MAX_COUNTER)
        return self._bury(job, settings, REJECTED)

    def parent_ended(self, job: Job, why: bytes) -> bool:
        """Move a job that waited for another one, which can no longer be done; `why` becomes its reason."""
        if job.id in self._moving:
            return True
        return self._bury(job, self._state.lifecycle.queues.settings_of(job.queue), PARENT, why)

    def expiring(self, job: Job) -> bool:
        """Move a job whose life is over, if its queue wants that; as the first holder, or after the others had time."""
        if job.id in self._moving or job.id in self._expired:
            return True
        settings = self._state.lifecycle.queues.settings_of(job.queue)
        if settings is None or not settings.dead_expired or job.is_dead_letter:
            return False
        if job.retry_s == 0:
            return job.state == QUEUED and not job.flags & DELIVERED and self._bury(job, settings, EXPIRED)
        turn: i64 = live_holders(self._state, job).index(self._state.view.node_id)
        if turn == 0:
            return self._bury(job, settings, EXPIRED)
        waiting = Expired(self, job)
        self._expired[job.id] = waiting
        self._state.lifecycle.park(job, self._state.now_ms)
        self._state.lifecycle.timers.arm(waiting, self._state.now_ms + turn * TURN_MS)
        return True

    def move_expired(self, waiting: Expired) -> None:
        """Move a job that no other holder has moved in time."""
        job = waiting.job
        del self._expired[job.id]
        lifecycle = self._state.lifecycle
        if lifecycle.table.get(job.id) is not job or not job.is_unfinished:
            return
        settings = lifecycle.queues.settings_of(job.queue)
        if settings is None or not self._bury(job, settings, EXPIRED):
            lifecycle.end(job, fate.EXPIRED)

    def clear(self) -> None:
        """All jobs were dropped."""
        for waiting in self._expired.values():
            self._state.lifecycle.timers.disarm(waiting)
        self._expired.clear()

    def _bury(self, job: Job, settings: QueueSettings | None, why: str, given: bytes = b"") -> bool:
        """Move a job to its queue of dead letters, or end it if its queue wants none; False if it is there already."""
        state = self._state
        counter = DEAD_BY[why]
        if settings is not None and settings.drops_dead:
            state.counters.add(counter)
            if state.lifecycle.acknowledge(job, state.now_ms, fate.DEAD):
                state.events.acknowledged(job)
            return True
        if _is_final(job, settings):
            return False
        target = dead_queue(settings, job.queue)
        lives_s: i64 = DEFAULT_DEAD_TTL_S if settings is None else settings.dead_ttl_s
        successor = make(
            job,
            target,
            state.next_named_ctime(target),
            state.now_ms,
            dead=True,
            reason=given or reason_of(job, why),
            lives_s=lives_s,
            keep_counters=False,
        )
        self._moving.begin(job, successor, counter)
        return True


def _is_final(job: Job, settings: QueueSettings | None) -> bool:
    """Whether the dead letter of a job would arrive in the queue in which the job is."""
    if settings is not None and settings.drops_dead:
        return False
    return dead_queue(settings, job.queue) == job.queue


def _is_last(job: Job, settings: QueueSettings, uncounted: i64) -> bool:
    """Whether the attempt that is over was the last one of a job; so many are not counted yet."""
    limit: i64 = settings.limit
    if limit == NONE or i64(job.nacks) + i64(job.additional_deliveries) + uncounted < limit:
        return False
    return settings.limit_is_exact or not job.is_dead_letter


def reason_of(job: Job, why: str) -> bytes:
    """Why a job is dead: the last reason that a worker gave, or what ended it."""
    given = None if job.extra is None else job.extra.get(REASON)
    if given:
        return given
    if why == LIMIT:
        return b"%d failed attempts" % (job.nacks + job.additional_deliveries)
    return b"expired unacknowledged" if why == EXPIRED else b"rejected by a worker"
