"""NEEDJOBS: another node's clients found a queue empty; ENOUGH: they do not wait any more."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.queues.queue import PAUSED_OUT, Queue
from disqued.core.runtime.state import NodeState
from disqued.federation import handover
from disqued.federation.needs import MAX_COUNT
from disqued.federation.parcel import Parcel, can_be_sent_to

UNWANTED_MS: Final = 1000
"""Jobs that no client here came for in that time are not kept for those that might."""


def needjobs(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Send what can be spared, and remember what was asked for beyond that."""
    if peer.flags & kinds.NODE_LEAVING:
        return
    name = frame.queue
    count: i64 = min(max(frame.aux, 1), MAX_COUNT)
    queue = state.lifecycle.queues.get(name)
    sent: i64 = 0 if queue is None else _answer(state, peer, queue, count)
    if sent < count:
        handover.remember(state, peer, name, count - sent)


def _answer(state: NodeState, peer: Peer, queue: Queue, count: i64) -> i64:
    """Send up to half of the waiting jobs, at least one, or all that nobody came for lately; returns how many.

    None when the queue is paused, when other nodes send jobs here themselves (nodes would send them in circles), or
    when they would not arrive.
    """
    if queue.length == 0 or queue.waiting > 0 or queue.pause & PAUSED_OUT or not can_be_sent_to(peer):
        return 0
    needs = queue.needs
    if needs is not None and needs.rate(state.now_ms) > 0:
        return 0
    unwanted = state.now_ms - queue.visited_ms > UNWANTED_MS
    spare: i64 = queue.length if unwanted else queue.length // 2
    parcel = Parcel(peer, min(count, max(spare, 1)))
    while queue.length > 0 and parcel.take(state, queue):
        pass
    parcel.send(state)
    return parcel.jobs


def enough(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Forget what the node asked for."""
    queue = state.lifecycle.queues.get(frame.queue)
    if queue is not None:
        handover.forget(state, queue, peer.id)
