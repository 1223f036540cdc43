"""Forgetting everything at once: all jobs, all queues, and the waits of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.core.waiting import release_all

if TYPE_CHECKING:
    from disqued.core.state import NodeState


def flush_all(state: NodeState) -> None:
    """Drop all jobs and queues of this node; clients that wait for jobs are answered as if their time were over."""
    lifecycle = state.lifecycle
    release_all(state)
    for job in lifecycle.table.jobs():
        lifecycle.drop(job)
    _, queues = lifecycle.queues.scan(0, len(lifecycle.queues))
    for queue in queues:
        lifecycle.remove_queue(queue)
