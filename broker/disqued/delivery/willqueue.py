"""WILLQUEUE: half a second before it queues a job again, a node asks whether another holder did."""

from __future__ import annotations

from disqued.core.job import Job
from disqued.core.state import NodeState


def announce(state: NodeState, job: Job) -> None:
    """Ask the other holders."""
