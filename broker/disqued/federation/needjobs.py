"""NEEDJOBS: clients of another node found a queue empty. ENOUGH: they do not wait any more."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.queues.queue import PAUSED_OUT, Queue
from disqued.core.runtime.state import NodeState
from disqued.federation import exporting
from disqued.federation.importing import MAX_COUNT
from disqued.federation.interest import imports_of
from disqued.federation.jobbatch import JobBatch, can_be_sent_to

UNWANTED_MS: Final = 1000
"""If no client asked for jobs here in that time, all of them may be exported."""


def handle_needjobs(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Send spare jobs, and remember the rest of the request."""
    if peer.flags & kinds.NODE_LEAVING:
        return
    name = frame.queue
    count: i64 = min(max(frame.aux, 1), MAX_COUNT)
    queue = state.lifecycle.queues.get(name)
    sent: i64 = 0 if queue is None else _answer(state, peer, queue, count)
    if sent < count:
        exporting.remember(state, peer, name, count - sent)


def _answer(state: NodeState, peer: Peer, queue: Queue, count: i64) -> i64:
    """Send up to half of the waiting jobs, at least one, or all if no client asked lately; returns how many.

    Sends none while the queue is paused, while other nodes send jobs here (they would travel in circles), or when they
    would not arrive.
    """
    if queue.spare == 0 or queue.pause & PAUSED_OUT or not can_be_sent_to(peer):
        return 0
    imports = imports_of(queue)
    if imports is not None and imports.rate(state.now_ms) > 0:
        return 0
    unwanted = state.now_ms - queue.visited_ms > UNWANTED_MS
    spare: i64 = queue.spare if unwanted else queue.spare // 2
    batch = JobBatch(state, peer, min(count, max(spare, 1)))
    while queue.spare > 0 and batch.take(state, queue):
        pass
    if batch.jobs > 0:
        batch.send(state)
    return batch.jobs


def handle_enough(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Forget the request of the node."""
    queue = state.lifecycle.queues.get(frame.queue)
    if queue is not None:
        exporting.forget(state, queue, peer.id)
