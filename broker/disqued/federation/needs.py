"""What this node needs from others: asks for the jobs of queues that its clients found empty."""

from __future__ import annotations

from disqued.core.queue import Queue
from disqued.core.state import NodeState


def queue_empty(state: NodeState, queue: Queue, *, drained: bool) -> None:
    """Clients found nothing in a queue, or took its last job: ask other nodes, if it is time."""


def queue_gone(state: NodeState, queue: Queue) -> None:
    """Forget all about a queue."""
