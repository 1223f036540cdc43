"""QUEUED: a node tells the other holders of a job that it queued it, so that only one of them does."""

from __future__ import annotations

from disqued.core.job import Job
from disqued.core.state import NodeState


def announce(state: NodeState, job: Job, counting: int) -> None:
    """Tell the other holders that the job is queued here, and what for."""
