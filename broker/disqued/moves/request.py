"""A move that somebody asked for, with MOVEJOB or REDRIVE: which jobs can be moved, and what their successors are."""

from __future__ import annotations

from disqued.core.jobs.job import ACTIVE, DELIVERED, QUEUED, Job
from disqued.core.runtime.state import NodeState
from disqued.moves.counters import MOVED
from disqued.moves.move import Moving
from disqued.moves.successor import life_s, make


def begin_move(state: NodeState, moving: Moving, job: Job, target: bytes, *, keep_counters: bool) -> bool:
    """Begin to move a job; False if it is finished, leased, moving already, or in that queue.

    One that waits for other jobs is not moved to a queue of another type.

    An at-most-once job is moved only while it is queued and was never delivered.
    """
    if job.queue == target or job.state not in (ACTIVE, QUEUED) or job.id in moving:
        return False
    if state.lifecycle.is_leased(job, state.now_ms):
        return False
    if job.is_held and state.events.keeps_queue(target):
        return False
    if job.retry_s == 0 and (job.state != QUEUED or job.flags & DELIVERED):
        return False
    successor = make(
        job,
        target,
        state.next_named_ctime(target),
        state.now_ms,
        dead=False,
        reason=b"",
        lives_s=life_s(job),
        keep_counters=keep_counters,
    )
    moving.begin(job, successor, MOVED)
    return True
