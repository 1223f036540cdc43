"""ACKJOB: acknowledge jobs."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.acks.ackoptions import AckOptions, ids_end, may_have_options, parse
from disqued.acks.copieswait import CopiesWait
from disqued.acks.counters import ACKS_FORWARDED, DUMMY_ACKS_DROPPED, DUMMY_ACKS_MADE, JOBS_ACKED
from disqued.acks.gc import collect
from disqued.bus import kinds
from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.jobs.job import ACKED, WAIT_REPL, Job
from disqued.core.jobs.jobid import can_exist, ttl_minutes
from disqued.core.runtime.claiming import require_current
from disqued.core.runtime.joblogs import log_of
from disqued.core.runtime.manyjobs import for_each_job, queues_of_jobs
from disqued.core.runtime.memorymonitor import make_room_for_one
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState
from disqued.errors import ResultNotKept, SequenceError
from disqued.jobmessages import send_setrec
from disqued.resp.limits import MAX_ARGUMENTS


def ackjob(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Acknowledge jobs and reply with the number that was known here and not acknowledged before."""
    if may_have_options(args):
        end = ids_end(args)
        if end < len(args):
            options = parse(args, end)
            _apply_options(state, args[1], options)
            if options.copies > 0:
                _acknowledge_in_copies(state, session, args[:2], options)
                return
            args = args[:end]
    for_each_job(state, session, args, acknowledge)


def _apply_options(state: NodeState, job_id: bytes, options: AckOptions) -> None:
    """Check and apply the options of one job. Raises ReplyError, and then the job may not be acknowledged."""
    job = state.lifecycle.table.get(job_id)
    if options.claim and job is not None:
        require_current(state, job, options.claim)
        if options.seq > 0:
            _require_entries(state, job, options.claim, options.seq)
    if options.result is not None:
        if not state.watches.keeper.take_result(job_id, options.result, options.claim):
            raise ResultNotKept
        if job is not None and job.state == ACKED:
            job.confirmed = None  # what the holders confirmed was an earlier result


def _acknowledge_in_copies(state: NodeState, session: Session, args: list[bytes], options: AckOptions) -> None:
    """Acknowledge a job, and reply when enough of its holders know of that.

    The holders are asked first: they get the question before the acknowledgement, so each of them tells its end.
    """
    job = state.lifecycle.table.get(args[1])
    record = state.records.get(args[1])
    was_holder = record is not None and record.queue != b""  # of a job that is collected
    holds = was_holder or (job is not None and not job.is_dummy)
    wait = CopiesWait(session, state, args[1], options.copies, holds=holds)
    wait.watch()
    wait.acknowledged = acknowledge(state, session, args, 1, 2)
    wait.begin(options.timeout_ms)


def _require_entries(state: NodeState, job: Job, claim: i64, count: i64) -> None:
    """Raise SequenceError unless the first entries of a claim are in the progress log here."""
    log = log_of(state, job.id)
    here = 0 if log is None else log.length(int(claim))
    if here < count:
        raise SequenceError(f"{here} of {count} entries are here; send the others again, then acknowledge the job")


def acknowledge(state: NodeState, session: Session, args: list[bytes], first: int, end: int) -> int:
    """Acknowledge the jobs whose IDs are in this part of the request; returns how many were not acknowledged before."""
    lifecycle = state.lifecycle
    queues = lifecycle.queues
    acknowledged = 0
    for index in range(first, end):
        job = lifecycle.table.get(args[index])
        if job is None:
            state.ready.tell_again(session)
            _acknowledge_unknown(state, args[index])
        elif job.state == WAIT_REPL and not state.events.complete(job):
            acknowledged += 1
            _acknowledge_unknown(state, args[index])  # it went to other nodes
        else:
            if queues.type_of(job.queue).release.acknowledge(job, state.now_ms):
                acknowledged += 1
            else:
                state.ready.tell_again(session)
            collect(state, job)
    state.counters.add(JOBS_ACKED, acknowledged)
    return acknowledged


def _acknowledge_unknown(state: NodeState, job_id: bytes) -> None:
    """Send the acknowledgement to the other nodes, one of which may have the job.

    This node keeps it until one of them answers that it has the job, or all answer that they do not. A leaving node
    keeps nothing, but the jobs that it transferred may still be acknowledged here: it asks once, and the holders do the
    rest. Acknowledgements of at-most-once jobs are only sent with a result, because these jobs are never delivered
    again.

    While a node is down, every ID is kept until the time in it is over, also one that a client invented. All of them
    may take a share of the memory; beyond it the oldest are dropped.
    """
    minutes: i64 = ttl_minutes(job_id)
    record = state.records.get(job_id) if state.records.count > 0 else None
    if state.view.size == 1 or (minutes & 1 == 0 and record is None) or not can_exist(job_id):
        return
    if state.view.leaving:
        state.counters.add(ACKS_FORWARDED)
        for peer in state.view.peers.values():
            if record is not None and peer.features & kinds.FEATURE_FATES:
                send_setrec(state, job_id, record.fate, peer, 0)
            elif not peer.in_handshake:
                send(state, peer, state.bus.about_job(kinds.SETACK, job_id))
        return
    make_room_for_one(state)
    state.counters.add(DUMMY_ACKS_MADE)
    expire_at_s: i64 = state.now_ms // 1000 + minutes * 60
    dummy = Job(job_id, b"", b"", 0, expire_at_s, 0, 0, 0)
    state.lifecycle.keep_dummy(dummy, state.now_ms)
    surplus = state.lifecycle.memory.surplus_unknown()
    if surplus is not None:
        state.lifecycle.drop(surplus)
        state.counters.add(DUMMY_ACKS_DROPPED)
    collect(state, dummy)


COMMAND: Final[Command] = Command(
    "ackjob",
    -1,
    ("write", "fast"),
    ackjob,
    "jobs",
    "Acknowledges jobs: they are done and are forgotten by all nodes.",
    "job-id [job-id ...] [CLAIM claim] [SEQ n] [RESULT bytes] [COPIES n TIMEOUT ms]",
    "O(jobs)",
    most_words=MAX_ARGUMENTS,
    queues=queues_of_jobs,
    categories=("consumer",),
)
