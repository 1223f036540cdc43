"""NACK: a worker could not do its job, somebody else should."""

from __future__ import annotations

from typing import Final

from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.lifecycle.lifecycle import COUNT_NACK
from disqued.core.runtime.manyjobs import for_each_job, queues_of_jobs
from disqued.core.runtime.state import NodeState
from disqued.delivery.enqueue import requeue
from disqued.resp.limits import MAX_ARGUMENTS


def nack(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Queue active jobs again, count the failure, and reply with their number."""
    for_each_job(state, session, args, _nack)


def _nack(state: NodeState, _session: Session, args: list[bytes], first: int, end: int) -> int:
    queued = 0
    for index in range(first, end):
        queued += requeue(state, args[index], COUNT_NACK)
    return queued


COMMAND: Final[Command] = Command(
    "nack",
    -1,
    ("write", "denyoom", "fast"),
    nack,
    "jobs",
    "Puts jobs that could not be processed back in their queues.",
    "job-id [job-id ...]",
    "O(jobs)",
    most_words=MAX_ARGUMENTS,
    queues=queues_of_jobs,
    categories=("consumer",),
)
