"""WORKING: a worker needs more time, the job must not be delivered again meanwhile, by no node."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Peer
from disqued.core.commands.command import Command
from disqued.core.jobs.job import ACKED, Job
from disqued.core.jobs.jobid import is_made_by, require_job_ids, ttl_range_s
from disqued.core.runtime.manyjobs import queues_of_jobs
from disqued.core.runtime.message import Message
from disqued.core.runtime.outbox import tell_holders
from disqued.core.runtime.state import NodeState
from disqued.errors import JobAcknowledged, NoJob, TooLate
from disqued.jobmessages import job_held_with


def working(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Restart the retry time and reply with it, in seconds; refused once half of the job's time to live is over."""
    require_job_ids(args, 1)
    lifecycle = state.lifecycle
    job = lifecycle.table.get(args[1])
    if job is None:
        retry_s = state.events.forwarded(args[1], kinds.WORKING, 0, 0)
        if retry_s < 0:
            raise NoJob
        session.reply_integer(retry_s)
        return
    if job.state == ACKED:
        raise JobAcknowledged
    left_ms: i64 = job.expire_at_s * 1000 - state.now_ms
    if left_ms < life_ms(state, job) // 2:
        raise TooLate
    lifecycle.dequeue(job)
    lifecycle.postpone(job, state.now_ms)
    if job.delivered is not None:
        tell_holders(state, job, state.bus.about_job(kinds.WORKING, job.id))
    session.reply_integer(job.retry_s)


def life_ms(state: NodeState, job: Job) -> i64:
    """From the creation of a job to its expiry.

    For another node's job the one is on that node's clock, the other on ours: however far those are apart, the life is
    what its ID says, to the minute.
    """
    life: i64 = job.expire_at_s * 1000 - job.created_ms
    if is_made_by(job.id, state.view.node_id):
        return life
    least_s, most_s = ttl_range_s(job.id)
    return min(max(life, i64(least_s) * 1000), i64(most_s) * 1000)


def handle_working(state: NodeState, peer: Peer, frame: Frame) -> None:
    """A worker of another node is at it: do not deliver the job before the retry time is over."""
    job = job_held_with(state, peer, frame)
    if job is None:
        return
    state.lifecycle.end_lease(job)  # otherwise two nodes that both delivered it would postpone each other forever
    state.lifecycle.dequeue(job)
    state.lifecycle.postpone(job, state.now_ms)


MESSAGE: Final[Message] = Message(
    kinds.WORKING,
    "WORKING",
    kinds.OF_JOB_ID,
    "a node that got WORKING, to the other holders",
    "a queued copy leaves its queue, the retry time starts again",
    handle_working,
)

COMMAND: Final[Command] = Command(
    "working",
    2,
    ("write", "fast"),
    working,
    "jobs",
    "Postpones the next delivery of a job that is being worked on.",
    "job-id",
    queues=queues_of_jobs,
    categories=("consumer",),
)
