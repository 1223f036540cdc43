"""MOVE, DEADSENT, REMOVE and PURGE: jobs that leave the queue without a consumer."""

from __future__ import annotations

from heapq import merge
from itertools import islice
from typing import Final

from mypy_extensions import i64

from disqued.core.fates.fate import DEAD, DELETED
from disqued.core.fates.fate import MOVED as MOVED_OUTCOME
from disqued.orderedqueue import effects as codes
from disqued.orderedqueue.commands import (
    DEAD_PHASE,
    DELAYED_PHASE,
    LEASED_PHASE,
    QUEUED_PHASE,
    DeadSent,
    MoveJobs,
    Purge,
    Remove,
)
from disqued.orderedqueue.effects import MOVED, Effects
from disqued.orderedqueue.job import DELAYED, LEASED, MOVING, READY, Job
from disqued.orderedqueue.state import State

MOST_PURGED: Final = 4096
"""How many jobs one PURGE looks at."""


def move(state: State, command: MoveJobs, effects: Effects) -> None:
    """Put jobs that nobody has on their way to another queue; the value is their number."""
    for index in command.indexes:
        code = codes.OK
        job = state.waiting.find(index)
        if job is None:
            code = codes.NO_JOB
        elif command.target == state.options.name:
            code = codes.SAME_QUEUE
        elif job.state == LEASED:
            code = codes.LEASED_NOW
        elif job.state == MOVING:
            code = codes.STALE
        else:
            begun = state.begin_move(job, command.target, MOVED, effects)
            begun.keeps_counters = command.keeps_counters
            begun.redrives = command.redrives
            effects.value += 1
        if code != codes.OK:
            effects.refuse(index, code)
            if len(command.indexes) == 1:
                effects.code = code


def dead_sent(state: State, command: DeadSent, effects: Effects) -> None:
    """End a job whose successor exists in the target queue."""
    job = state.moving.get(int(command.index))
    if job is None or job.move is None:
        effects.code = codes.NO_JOB
        return
    outcome = MOVED_OUTCOME if job.move.why == MOVED else DEAD
    state.end(job, outcome, effects)
    record = state.find_record(command.index)
    if record is not None:
        state.records.set_successor(record, command.successor)
    effects.value = 1


def remove(state: State, command: Remove, effects: Effects) -> None:
    """End jobs whatever their states; the value is their number."""
    for index in command.indexes:
        job = state.waiting.find(index)
        if job is None:
            effects.refuse(index, codes.NO_JOB)
        else:
            state.end(job, command.outcome, effects)
            effects.value += 1


def purge(state: State, command: Purge, effects: Effects) -> None:
    """Delete the jobs of some phases; the value is their number.

    Looks at a bounded number of jobs; `next_index` then says where to continue.
    """
    first: i64 = max(command.first - 1, 0)
    candidates = merge(
        state.waiting.after(first, MOST_PURGED),
        sorted(index for index, job in state.waiting.jobs.items() if index > first and job.state != READY),
    )
    seen: i64 = 0
    for index in islice(candidates, MOST_PURGED):
        if command.last > 0 and index > command.last:
            break
        seen += 1
        effects.next_index = index + 1
        job = state.waiting.find(index)
        assert job is not None
        if _phase(job) & command.phases and (command.before_ms == 0 or job.created_ms < command.before_ms):
            state.end(job, DELETED, effects)
            effects.value += 1
    if seen < MOST_PURGED:
        effects.next_index = 0


def _phase(job: Job) -> i64:
    """The phase of a job for PURGE; 0 for one on its way to another queue."""
    if job.state == LEASED:
        return LEASED_PHASE
    if job.state == DELAYED:
        return DELAYED_PHASE
    if job.state == MOVING:
        return 0
    return DEAD_PHASE if job.profile.dead else QUEUED_PHASE
