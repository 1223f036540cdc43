"""FASTACK: acknowledge jobs at best effort, without waiting for confirmations of the other holders."""

from __future__ import annotations

from typing import Final

from disqued.acks.counters import JOBS_ACKED
from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.fates.fate import DELETED, DONE
from disqued.core.jobs.job import WAIT_REPL
from disqued.core.runtime.manyjobs import for_each_job, queues_of_jobs
from disqued.core.runtime.outbox import delete_at_holders, delete_everywhere
from disqued.core.runtime.state import NodeState
from disqued.resp.limits import MAX_ARGUMENTS


def fastack(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Drop the jobs here and on their holders (on all nodes if unknown here); reply with the number known here."""
    for_each_job(state, session, args, drop_everywhere)


def drop_everywhere(state: NodeState, session: Session, args: list[bytes], first: int, end: int) -> int:
    """Drop the jobs whose IDs are in this part of the request, on all nodes; returns how many were known here."""
    lifecycle = state.lifecycle
    deleted = 0
    for index in range(first, end):
        job_id = args[index]
        job = lifecycle.table.get(job_id)
        if job is None:
            state.ready.tell_again(session)
            delete_everywhere(state, job_id)
            continue
        if job.is_dummy:
            delete_everywhere(state, job_id)
        elif job.delivered is not None and job.state != WAIT_REPL:
            delete_at_holders(state, job)
        lifecycle.end(job, DELETED if job.state == WAIT_REPL else DONE)  # copies that it waits for are deleted too
        deleted += 1
    state.counters.add(JOBS_ACKED, deleted)
    return deleted


COMMAND: Final[Command] = Command(
    "fastack",
    -1,
    ("write", "fast"),
    fastack,
    "jobs",
    "Deletes jobs from all nodes that may have them, at best effort.",
    "job-id [job-id ...]",
    "O(jobs)",
    most_words=MAX_ARGUMENTS,
    queues=queues_of_jobs,
    categories=("consumer",),
)
