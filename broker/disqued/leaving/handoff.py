"""The hand-off of a node that leaves: its jobs go to the other nodes, without waiting for consumers or for expiry."""

from __future__ import annotations

from disqued.core.job import Job
from disqued.core.peer import Peer
from disqued.core.state import NodeState


def leaving_changed(state: NodeState) -> None:
    """Begin to hand over, or stop."""


def copy_confirmed(state: NodeState, job: Job, peer: Peer) -> None:
    """A node has a copy of a job."""
