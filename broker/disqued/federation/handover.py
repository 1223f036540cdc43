"""Who asked for jobs is remembered: a job that comes later goes to where a client waits for it, at once."""

from __future__ import annotations

from disqued.core.peer import Peer
from disqued.core.state import NodeState


def hand_over(state: NodeState) -> None:
    """Send the jobs that nobody here waits for to the nodes that asked for them."""


def peer_forgotten(state: NodeState, peer: Peer) -> None:
    """Forget what a node asked for."""
