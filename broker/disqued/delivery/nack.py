"""NACK: a worker could not do its job, somebody else should."""

from __future__ import annotations

from typing import Final

from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.lifecycle.lifecycle import COUNT_NACK
from disqued.core.runtime.state import NodeState
from disqued.delivery.enqueue import requeue_all


def nack(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Queue jobs again and count the failure."""
    requeue_all(state, session, args, COUNT_NACK)


COMMAND: Final[Command] = Command(
    "nack",
    -1,
    ("write", "denyoom", "fast"),
    nack,
    "jobs",
    "Puts jobs that could not be processed back in their queues.",
    "job-id [job-id ...]",
    "O(jobs)",
)
