"""DEQUEUE: take jobs out of their queues without delivering them. Their requeue time stays."""

from __future__ import annotations

from typing import Final

from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.jobs.jobid import require_job_ids
from disqued.core.runtime.state import NodeState


def dequeue(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the number of jobs that were queued."""
    require_job_ids(args, 1)
    removed = 0
    for index in range(1, len(args)):
        job = state.lifecycle.table.get(args[index])
        if job is not None and state.lifecycle.dequeue(job):
            removed += 1
    session.reply_integer(removed)


COMMAND: Final[Command] = Command(
    "dequeue",
    -1,
    ("write", "fast"),
    dequeue,
    "jobs",
    "Takes jobs out of their queues without delivering them.",
    "job-id [job-id ...]",
    "O(jobs)",
)
