"""The copies of a new job: to whom it is sent, who confirmed, and what its client is told."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.blocked import WaitForCopies
from disqued.core.job import Job
from disqued.core.session import Session
from disqued.core.state import NodeState


def replicate(
    state: NodeState, session: Session, job: Job, timeout_ms: i64, *, asynchronous: bool, external: bool
) -> None:
    """Send a new job to other nodes; the client waits for them unless `asynchronous`."""


def complete(state: NodeState, job: Job) -> bool:
    """Answer who waits for the copies of a job as if all had confirmed; False when the job is not here any more."""
    return state.lifecycle.table.get(job.id) is not None


def lost(state: NodeState, job: Job) -> None:
    """The job is dropped before it had its copies."""


def client_gone(state: NodeState, wait: WaitForCopies) -> None:
    """The client that waited is gone: the job is deleted wherever it may be."""
