"""WORKING: a worker needs more time, the job must not be delivered again meanwhile."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.command import Command
from disqued.core.job import ACKED
from disqued.core.jobid import require_job_ids
from disqued.core.session import Session
from disqued.core.state import NodeState
from disqued.errors import JobAcknowledged, NoJob, TooLate


def working(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Start the retry time anew and reply with it, in seconds; refused once half of the job's life is over."""
    require_job_ids(args, 1)
    lifecycle = state.lifecycle
    job = lifecycle.table.get(args[1])
    if job is None:
        raise NoJob
    if job.state == ACKED:
        raise JobAcknowledged
    created_ms: i64 = job.ctime // 1_000_000
    life_ms: i64 = job.expire_at_s * 1000 - created_ms
    if state.now_ms - created_ms > life_ms // 2:
        raise TooLate
    lifecycle.dequeue(job)
    lifecycle.postpone(job, state.now_ms)
    session.reply_integer(job.retry_s)


COMMAND: Final[Command] = Command(
    "working",
    2,
    ("write", "fast"),
    working,
    "jobs",
    "Postpones the next delivery of a job that is being worked on.",
    "job-id",
)
