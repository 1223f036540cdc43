"""ENQUEUE: put active jobs back in their queues now; as a message: queue a job for a node that keeps no copy."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Peer
from disqued.core.commands.command import Command
from disqued.core.jobs.job import ACTIVE, DELIVERED, QUEUED, Job
from disqued.core.lifecycle.delays import is_delayed
from disqued.core.lifecycle.lifecycle import COUNT_DELIVERY, COUNT_NACK, SILENT, UNCOUNTED
from disqued.core.runtime.audit import always
from disqued.core.runtime.manyjobs import for_each_job, queues_of_jobs
from disqued.core.runtime.message import Message
from disqued.core.runtime.state import NodeState
from disqued.delivery.counters import REQUEUED_BY_ENQUEUE, REQUEUED_BY_NACK, REQUEUED_ELSEWHERE
from disqued.delivery.queued import FLAGS
from disqued.jobmessages import job_of
from disqued.resp.limits import MAX_ARGUMENTS


def forward(state: NodeState, job_id: bytes, counting: int, delay_s: int) -> bool:
    """Have another node queue a job that is not known here, after a delay, if this node transferred it there."""
    return state.events.forwarded(job_id, kinds.ENQUEUE, FLAGS[counting], delay_s) >= 0


def requeue(state: NodeState, job: Job, counting: int) -> bool:
    """Queue a job if it is active; shared with NACK."""
    if not state.lifecycle.queues.type_of(job.queue).release.give_back(job, state.now_ms, counting):
        return False
    if job.state == QUEUED:  # otherwise its last attempt failed
        state.counters.add(REQUEUED_BY_NACK if counting == COUNT_NACK else REQUEUED_BY_ENQUEUE)
    return True


def enqueue(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Queue active jobs now and reply with their number. That counts as an additional delivery unless they waited.

    Jobs that wait for their parents are not queued.
    """
    for_each_job(state, session, args, enqueue_part)


def enqueue_part(state: NodeState, _session: Session, args: list[bytes], first: int, end: int) -> int:
    """Queue the jobs whose IDs are in this part of the request; returns how many could be."""
    queued = 0
    for index in range(first, end):
        job = state.lifecycle.table.get(args[index])
        if job is None:
            queued += forward(state, args[index], COUNT_DELIVERY, 0)
        else:
            queued += requeue(state, job, UNCOUNTED if is_delayed(job, state.now_ms) else COUNT_DELIVERY)
    return queued


def handle_enqueue(state: NodeState, peer: Peer, frame: Frame) -> None:  # noqa: ARG001 - any member may ask
    """Queue the job now, or `aux` seconds from now. One that waits for its parents is queued here when they are done.

    No other node queues it, so no other node needs to know, unless several nodes may have added it.
    If the queue is paused for input, a job with a retry time waits for the end of that time, unless a leaving node had
    it queued. An at-most-once job has no retry time, so it is queued despite the pause, unless it was delivered before.
    """
    job = job_of(state, frame)
    if job is None or job.state != ACTIVE:
        return
    lifecycle = state.lifecycle
    if job.retry_s > 0:
        if not frame.message_flags & kinds.TRANSFER and lifecycle.queues.takes_no_input(job.queue):
            return
    elif job.flags & DELIVERED:
        return
    delay_s: i64 = frame.aux
    if delay_s > 0 or job.is_held:
        lifecycle.delay_until(job, state.now_ms, state.now_ms + delay_s * 1000)
        return
    job.requeue_at_ms = state.now_ms
    if lifecycle.enqueue(job, state.now_ms, UNCOUNTED if job.is_named else SILENT):
        state.counters.add(REQUEUED_ELSEWHERE)


MESSAGE: Final[Message] = Message(
    kinds.ENQUEUE,
    "ENQUEUE",
    kinds.OF_JOB_ID,
    "a node that gave a job away, to one that has it",
    "the receiver queues the job, after as many seconds as the number says",
    handle_enqueue,
)

COMMAND: Final[Command] = Command(
    "enqueue",
    -1,
    ("write", "denyoom", "fast"),
    enqueue,
    "jobs",
    "Puts active jobs back in their queues.",
    "job-id [job-id ...]",
    "O(jobs)",
    most_words=MAX_ARGUMENTS,
    queues=queues_of_jobs,
    audited=always,
    categories=("queueadmin",),
)
