"""RESULT: what became of a job, asked of all nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.jobs.jobid import require_job_ids
from disqued.core.runtime.manyjobs import queues_of_fates
from disqued.fates.waiting import FateWait

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def result(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the outcome, the time of the end, the claim and the result; a null array if no node knows the job."""
    require_job_ids(args, 1)
    FateWait(session, state, args[1:], 0).begin()


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
