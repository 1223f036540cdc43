"""DEQUEUE: take jobs out of their queues without delivering them. Their requeue time stays."""

from __future__ import annotations

from typing import Final

from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.runtime.audit import always
from disqued.core.runtime.manyjobs import for_each_job, queues_of_jobs
from disqued.core.runtime.state import NodeState
from disqued.resp.limits import MAX_ARGUMENTS


def dequeue(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the number of jobs that were queued."""
    for_each_job(state, session, args, _dequeue)


def _dequeue(state: NodeState, _session: Session, args: list[bytes], first: int, end: int) -> int:
    removed = 0
    for index in range(first, end):
        job = state.lifecycle.table.get(args[index])
        if job is not None and state.lifecycle.dequeue(job):
            removed += 1
    return removed


COMMAND: Final[Command] = Command(
    "dequeue",
    -1,
    ("write", "fast"),
    dequeue,
    "jobs",
    "Takes jobs out of their queues without delivering them.",
    "job-id [job-id ...]",
    "O(jobs)",
    most_words=MAX_ARGUMENTS,
    queues=queues_of_jobs,
    audited=always,
    categories=("queueadmin",),
)
