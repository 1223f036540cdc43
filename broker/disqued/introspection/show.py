"""SHOW: everything that this node knows about a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.jobs.jobid import require_job_ids
from disqued.core.runtime.manyjobs import queues_of_jobs
from disqued.introspection.description import describe_job

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def show(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the description of a job, or null if this node does not know it."""
    require_job_ids(args, 1)
    job = state.lifecycle.table.get(args[1])
    if job is None:
        session.reply_null()
    else:
        describe_job(state, session, job)


COMMAND: Final[Command] = Command(
    "show",
    2,
    ("readonly", "fast"),
    show,
    "jobs",
    "Describes a job: its state, its times and counters, its body.",
    "job-id",
    queues=queues_of_jobs,
    categories=("inspect",),
)
