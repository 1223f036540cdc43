"""Garbage collection of acknowledged jobs: one is forgotten when every node that may have it knows.

While this node is the only holder that is at once.
"""

from __future__ import annotations

from disqued.core.job import Job
from disqued.core.peer import Peer
from disqued.core.state import NodeState


def collect(state: NodeState, job: Job) -> None:
    """Forget an acknowledged job if all holders know, ask them otherwise."""
    if job.delivered is None:
        state.lifecycle.drop(job)


def peer_forgotten(state: NodeState, peer: Peer) -> None:
    """Wait no more for a node that is no member."""
