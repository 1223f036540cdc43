"""ACKJOB: the jobs are done."""

from __future__ import annotations

from typing import Final

from disqued.acks.gc import collect
from disqued.core.command import Command
from disqued.core.jobid import require_job_ids
from disqued.core.session import Session
from disqued.core.state import NodeState


def ackjob(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Acknowledge jobs and reply with the number that was known here and not acknowledged before."""
    require_job_ids(args, 1)
    lifecycle = state.lifecycle
    acknowledged = 0
    for index in range(1, len(args)):
        job = lifecycle.table.get(args[index])
        if job is not None:
            if lifecycle.acknowledge(job, state.now_ms):
                acknowledged += 1
            collect(state, job)
    session.reply_integer(acknowledged)


COMMAND: Final[Command] = Command(
    "ackjob",
    -1,
    ("write", "fast"),
    ackjob,
    "jobs",
    "Acknowledges jobs: they are done and are forgotten by all nodes.",
    "job-id [job-id ...]",
    "O(jobs)",
)
