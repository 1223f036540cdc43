"""RESULT: what became of jobs, asked of all nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.jobs.jobid import require_job_ids
from disqued.core.runtime.manyjobs import queues_of_fates
from disqued.fates.waiting import MOST_JOBS, FateWait, require_few_jobs

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def result(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the outcome, the time of the end, the claim and the result; a null array if no node knows the job.

    Several jobs get a list of these, each with its ID in front. Raises ReplyError for too many jobs.
    """
    require_job_ids(args, 1)
    require_few_jobs("RESULT", len(args) - 1)
    FateWait(session, state, args[1:]).begin()


COMMAND: Final[Command] = Command(
    "result",
    -2,
    ("readonly", "fast"),
    result,
    "jobs",
    "Replies how jobs ended, when, under which claims, and with which results.",
    "job-id [job-id ...]",
    "O(jobs * nodes)",
    most_words=2 * MOST_JOBS,
    queues=queues_of_fates,
    categories=("producer",),
)
