"""ACK, NACK and RENEW: what workers do with jobs that they have.

A claim must be the last one of its job; otherwise the job was given to another consumer since, and the answer is STALE.
An ACK with the last claim counts although the lease has ended meanwhile, as long as nobody else got the job: the work
was done once. To renew or to give back a job, a consumer must have it.

In a SINGLE queue all claims become stale when another consumer becomes active. Otherwise a former consumer could end a
job while the active one works on an earlier one.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.fates.fate import DONE
from disqued.orderedqueue import effects as codes
from disqued.orderedqueue.commands import Ack, Nack, Renew
from disqued.orderedqueue.effects import MOVED, Effects
from disqued.orderedqueue.job import DELAYED, LEASED, MOVING, Job
from disqued.orderedqueue.state import NACKED, REDELIVERED, UNCOUNTED, State


def ack(state: State, command: Ack, effects: Effects) -> None:
    """End jobs; the value is their number."""
    claims = command.claims
    for place, index in enumerate(command.indexes):
        claim: i64 = 0 if claims is None else claims[place]
        job = state.waiting.find(index)
        if job is None:
            _ack_ended(state, command, index, claim, effects)
        elif _is_stale(state, job, claim):
            _refuse(command.indexes, index, codes.STALE, effects)
        elif command.result is not None and job.profile.retain_s == 0 and command.keep_s == 0:
            _refuse(command.indexes, index, codes.NOT_KEPT, effects)
        else:
            state.end(job, DONE, effects, command.result, command.keep_s)
            effects.value += 1


def _is_stale(state: State, job: Job, claim: i64) -> bool:
    """Whether a claim does not count any more; 0 stands for a command without a claim, which always counts."""
    return claim != 0 and (claim != job.claim or claim <= state.fence)


def _ack_ended(state: State, command: Ack, index: i64, claim: i64, effects: Effects) -> None:
    """A job that was assigned at most once ended then: its record takes the first result."""
    record = state.find_record(index)
    result = command.result
    if (
        result is not None
        and record is not None
        and record.outcome == DONE
        and record.result is None
        and (claim == 0 or claim == record.claim)
    ):
        state.records.set_result(record, result)
        effects.value += 1
    else:
        _refuse(command.indexes, index, codes.NO_JOB, effects)


def _refuse(indexes: list[int], index: i64, code: i64, effects: Effects) -> None:
    """Do nothing for one job of a command. If it is the only one, that is the result of the command."""
    if len(indexes) == 1:
        effects.code = code
    effects.refuse(index, code)


def nack(state: State, command: Nack, effects: Effects) -> None:
    """Give jobs back, now or after a delay; the value is their number."""
    claims = command.claims
    for place, index in enumerate(command.indexes):
        claim: i64 = 0 if claims is None else claims[place]
        job = state.waiting.find(index)
        code = codes.NO_JOB
        if job is not None:
            code = codes.STALE if _is_stale(state, job, claim) else _nack(state, job, command, effects)
        if code == codes.OK:
            effects.value += 1
        else:
            _refuse(command.indexes, index, code, effects)


def _nack(state: State, job: Job, command: Nack, effects: Effects) -> i64:
    """Give one job back. Returns a code."""
    if command.rejected:
        return _reject(state, job, command, effects)
    # MOVEJOB is cancelled; ENQUEUE also cancels the move of a dead letter that cannot be completed
    is_moved = job.move is not None and (job.move.why == MOVED or command.at_once)
    if job.state != LEASED and job.state != DELAYED and not is_moved:
        return codes.STALE
    left_ms = job.expires_ms - state.now_ms
    delay_ms = command.delay_ms
    if delay_ms > 0 and delay_ms >= left_ms:
        if len(command.indexes) == 1:
            effects.value = max(left_ms, 0)
        return codes.TTL
    if command.reason is not None:
        job.reason = command.reason
    counting: i64 = NACKED
    if command.uncounted or is_moved:
        counting = UNCOUNTED
    elif command.at_once:
        counting = REDELIVERED if job.state == LEASED else UNCOUNTED
    if counting == NACKED and delay_ms == 0:
        delay_ms = state.backoff_ms(job, left_ms)
    state.give_back(job, counting, delay_ms, effects)
    return codes.OK


def _reject(state: State, job: Job, command: Nack, effects: Effects) -> i64:
    """Make a dead letter of a job. Returns a code."""
    if job.state == MOVING:
        return codes.OK
    if command.reason is not None:
        job.reason = command.reason
    job.nacks += 1
    if state.bury(job, codes.REJECTED, effects):
        return codes.OK
    job.nacks -= 1
    return codes.SAME_QUEUE


def renew(state: State, command: Renew, effects: Effects) -> None:
    """Extend a lease; the value is its length in milliseconds."""
    job = state.waiting.find(command.index)
    if job is None:
        effects.code = codes.NO_JOB
        return
    if job.state != LEASED or _is_stale(state, job, command.claim):
        effects.code = codes.STALE
        return
    half_ms = job.profile.ttl_s * 500
    if job.expires_ms - state.now_ms < half_ms or command.lease_ms > half_ms:
        effects.code = codes.TOO_LATE
        return
    lease_ms = command.lease_ms if command.lease_ms > 0 else job.profile.retry_s * 1000
    if job.consumer is not None:
        job.consumer.seen_ms = state.now_ms
    if command.note:
        job.note = command.note
    job.until_ms = state.now_ms + lease_ms
    state.timers.arm(job)
    effects.value = lease_ms
