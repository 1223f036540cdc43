"""ACKJOB: acknowledge jobs."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.acks.ackoptions import ids_end, may_have_options, parse
from disqued.acks.counters import ACKS_FORWARDED, DUMMY_ACKS_DROPPED, DUMMY_ACKS_MADE, JOBS_ACKED
from disqued.acks.gc import collect
from disqued.bus import kinds
from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.jobs.job import WAIT_REPL, Job
from disqued.core.jobs.jobid import can_exist, ttl_minutes
from disqued.core.runtime.claiming import require_current
from disqued.core.runtime.manyjobs import for_each_job, queues_of_jobs
from disqued.core.runtime.memorymonitor import make_room_for_one
from disqued.core.runtime.outbox import tell_all
from disqued.core.runtime.state import NodeState
from disqued.resp.limits import MAX_ARGUMENTS


def ackjob(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Acknowledge jobs and reply with the number that was known here and not acknowledged before."""
    if may_have_options(args):
        end = ids_end(args)
        if end < len(args):
            _apply_options(state, args, end)
            args = args[:end]
    for_each_job(state, session, args, _acknowledge)


def _apply_options(state: NodeState, args: list[bytes], end: int) -> None:
    """Check and apply the options behind the job IDs. Raises ReplyError, and then no job may be acknowledged."""
    options = parse(args, end)
    if options.claim:
        job = state.lifecycle.table.get(args[1])
        if job is not None:
            require_current(state, job, options.claim)


def _acknowledge(state: NodeState, session: Session, args: list[bytes], first: int, end: int) -> int:
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
    rest. Acknowledgements of at-most-once jobs are not sent, because these jobs are never delivered again.

    While a node is down, every ID is kept until the time in it is over, also one that a client invented. All of them
    may take a share of the memory; beyond it the oldest are dropped.
    """
    minutes: i64 = ttl_minutes(job_id)
    if state.view.size == 1 or minutes & 1 == 0 or not can_exist(job_id):
        return
    if state.view.leaving:
        state.counters.add(ACKS_FORWARDED)
        tell_all(state, state.bus.about_job(kinds.SETACK, job_id))
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
    "job-id [job-id ...] [CLAIM claim]",
    "O(jobs)",
    most_words=MAX_ARGUMENTS,
    queues=queues_of_jobs,
    categories=("consumer",),
)
