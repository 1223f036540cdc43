"""RESULT: what became of a job, asked of all nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.jobs.jobid import is_job_id, require_job_ids
from disqued.fates.waiting import FateWait

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def result(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the outcome, the time of the end, the claim and the result; a null array if no node knows the job."""
    require_job_ids(args, 1)
    FateWait(session, state, args[1:], 0).begin()


def queues_of_fates(state: NodeState, args: list[bytes]) -> list[bytes]:
    """The queues of the jobs in a request that this node knows, unfinished or by their records.

    A job that it does not know has none, as for other commands about jobs: its ID cannot be guessed.
    """
    queues: list[bytes] = []
    for job_id in filter(is_job_id, args[1:]):
        job = state.lifecycle.table.get(job_id)
        record = state.records.get(job_id)
        if job is not None and not job.is_dummy:
            queues.append(job.queue)
        elif record is not None and record.queue:
            queues.append(record.queue)
    return queues


COMMAND: Final[Command] = Command(
    "result",
    2,
    ("readonly", "fast"),
    result,
    "jobs",
    "Replies how a job ended, when, under which claim, and with which result.",
    "job-id",
    "O(nodes)",
    queues=queues_of_fates,
    categories=("producer",),
)
