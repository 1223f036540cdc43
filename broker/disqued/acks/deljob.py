"""DELJOB: forget jobs on this node only."""

from __future__ import annotations

from typing import Final

from disqued.core.command import Command
from disqued.core.jobid import require_job_ids
from disqued.core.session import Session
from disqued.core.state import NodeState


def delete_all(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Drop the known jobs among the IDs and reply with their number; shared with FASTACK."""
    require_job_ids(args, 1)
    lifecycle = state.lifecycle
    deleted = 0
    for index in range(1, len(args)):
        job = lifecycle.table.get(args[index])
        if job is not None:
            lifecycle.drop(job)
            deleted += 1
    session.reply_integer(deleted)


COMMAND: Final[Command] = Command(
    "deljob",
    -1,
    ("write", "fast"),
    delete_all,
    "jobs",
    "Deletes jobs from this node only.",
    "job-id [job-id ...]",
    "O(jobs)",
)
