"""Drops everything at once: all jobs, queues and keys of jobs, and the waits of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.core.runtime.waiting import release_all

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState


def flush_all(state: NodeState) -> None:
    """Drop all jobs, keys and queues of this node. Waiting clients get the same reply as after their timeout.

    A record for each of millions of jobs would block the node for long, so the journal is off meanwhile, and the event
    `all_dropped` follows once.
    """
    lifecycle = state.lifecycle
    journal = lifecycle.journal
    noting = journal.on
    journal.on = False
    release_all(state)
    for job in lifecycle.table.jobs():
        lifecycle.drop(job)
    _, queues = lifecycle.queues.scan(0, len(lifecycle.queues))
    for queue in queues:
        lifecycle.remove_queue(queue)
    lifecycle.keys.forget_all()
    journal.on = noting
    state.events.all_dropped()
