"""ENQUEUE: put active jobs back in their queues now."""

from __future__ import annotations

from typing import Final

from disqued.core.command import Command
from disqued.core.jobid import require_job_ids
from disqued.core.lifecycle import COUNT_DELIVERY
from disqued.core.session import Session
from disqued.core.state import NodeState


def requeue_all(state: NodeState, session: Session, args: list[bytes], counting: int) -> None:
    """Queue the active jobs among the IDs and reply with their number; shared with NACK."""
    require_job_ids(args, 1)
    queued = 0
    for index in range(1, len(args)):
        job = state.lifecycle.table.get(args[index])
        if job is not None and state.lifecycle.enqueue(job, state.now_ms, counting):
            queued += 1
    session.reply_integer(queued)


def enqueue(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Queue jobs again; it counts as an additional delivery."""
    requeue_all(state, session, args, COUNT_DELIVERY)


COMMAND: Final[Command] = Command(
    "enqueue",
    -1,
    ("write", "denyoom", "fast"),
    enqueue,
    "jobs",
    "Puts active jobs back in their queues.",
    "job-id [job-id ...]",
    "O(jobs)",
)
