"""Who asked for jobs is remembered: a job that comes later goes to where a client waits for it, at once.

What a NEEDJOBS asks for and does not get is kept with the queue until it is used up, taken back (ENOUGH) or 40 seconds
old, longer than the longest pause of who asks. Jobs go to the nodes in the order in which they asked, one in turn,
after the clients that wait here.

Asks are used up by jobs, so no job travels for ever. A queue that imports is in no hurry to give its jobs away: only
those that no client came for in 50 ms go on, or two nodes that both asked would play ball with them.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.queues.interest import Ask, Asks
from disqued.core.queues.queue import PAUSED_OUT, Queue
from disqued.core.runtime.state import NodeState
from disqued.federation.parcel import Parcel, can_be_sent_to

ASK_MS: Final = 40_000
"""How long an ask is remembered."""
KEEP_MS: Final = 50
"""How long jobs that this node needs itself stay, and how soon what was left over is looked at again."""
_BLOCKED_MS: Final = 200
"""How soon it is tried again when the queue is paused or no node that asked can be sent anything."""


@mypyc_attr(acyclic=True)
class QueueAsks(Asks):
    """The asks for one queue, woken when some grow old or jobs were left over."""

    def ring(self, state: NodeState) -> None:
        """Hand over what is there, forget what is old."""
        queue = state.lifecycle.queues.get(self.name)
        if queue is None or queue.asks is not self:
            return
        _drop_old(state, self)
        _serve(state, queue, self)
        _arm(state, queue, self)


def remember(state: NodeState, peer: Peer, name: bytes, count: i64) -> None:
    """Keep in mind that a node wants `count` jobs; nothing is when this node is short of memory."""
    lifecycle = state.lifecycle
    if lifecycle.memory.level() > 0 and lifecycle.queues.get(name) is None:
        return
    queue = lifecycle.make_queue(name, state.now_ms)
    asks = queue.asks
    if asks is None:
        asks = QueueAsks(queue.name)
        queue.asks = asks
        queue.wanted = True
        state.demand.asks += 1
    ask = asks.by_node.get(peer.id)
    if ask is None:
        asks.by_node[peer.id] = Ask(count, state.now_ms)
    else:
        ask.count = max(ask.count, count)
        ask.asked_ms = state.now_ms
    _arm(state, queue, asks)


def forget(state: NodeState, queue: Queue, node_id: bytes) -> None:
    """A node needs nothing any more."""
    asks = queue.asks
    if asks is not None and asks.by_node.pop(node_id, None) is not None and not asks.by_node:
        forget_all(state, queue)


def forget_all(state: NodeState, queue: Queue) -> None:
    """Nobody asks for the jobs of a queue any more."""
    asks = queue.asks
    if asks is not None:
        state.lifecycle.timers.disarm(asks)
        queue.asks = None
        queue.wanted = False
        state.demand.asks -= 1


def hand_over(state: NodeState) -> None:
    """Send the jobs that nobody here waits for to the nodes that asked for them."""
    wanted = state.lifecycle.wanted
    for queue in wanted:
        queue.sought = False
        asks = queue.asks
        if asks is not None and queue.length > 0:
            _serve(state, queue, asks)
            _arm(state, queue, asks)
    wanted.clear()


def peer_forgotten(state: NodeState, peer: Peer) -> None:
    """Forget what a node is to be told; its asks are dropped when they are looked at."""
    state.demand.greetings.pop(peer.id, None)


def _is_needed_here(state: NodeState, queue: Queue) -> bool:
    """Whether clients here took jobs, or came for them, a moment ago, and they come from other nodes."""
    needs = queue.needs
    if needs is None or needs.rate(state.now_ms) == 0:
        return False
    return state.now_ms - max(needs.used_ms, needs.imported_ms) < KEEP_MS


def _serve(state: NodeState, queue: Queue, asks: Asks) -> None:
    """Share out the jobs of a queue among the nodes that asked, one to each in turn."""
    if queue.length == 0 or queue.waiting > 0 or queue.pause & PAUSED_OUT or _is_needed_here(state, queue):
        return
    parcels: list[Parcel] = []
    for node_id, ask in asks.by_node.items():
        peer = state.view.peers.get(node_id)
        if peer is not None and can_be_sent_to(peer):
            parcels.append(Parcel(peer, ask.count))
    filling = parcels
    while filling and queue.length > 0:
        filling = [parcel for parcel in filling if parcel.take(state, queue)]
    for parcel in parcels:
        if parcel.jobs > 0:
            ask = asks.by_node.pop(parcel.peer.id)
            ask.count -= parcel.jobs
            if ask.count > 0:
                asks.by_node[parcel.peer.id] = ask
            parcel.send(state)


def _drop_old(state: NodeState, asks: Asks) -> None:
    """Drop asks that are old, and those of nodes that left or are leaving."""
    old: list[bytes] = []
    for node_id, ask in asks.by_node.items():
        peer = state.view.peers.get(node_id)
        if peer is None or peer.flags & kinds.NODE_LEAVING or state.now_ms - ask.asked_ms >= ASK_MS:
            old.append(node_id)
    for node_id in old:
        del asks.by_node[node_id]


def _arm(state: NodeState, queue: Queue, asks: Asks) -> None:
    """Set when to look again: soon if there are jobs, otherwise when the asks are old."""
    if not asks.by_node:
        forget_all(state, queue)
        return
    now_ms = state.now_ms
    pause_ms: i64 = ASK_MS
    if queue.length > 0:
        blocked = queue.waiting > 0 or queue.pause & PAUSED_OUT != 0 or not _any_can_be_sent_to(state, asks)
        pause_ms = _BLOCKED_MS if blocked else KEEP_MS
    if asks.awake_ms == 0 or asks.awake_ms > now_ms + pause_ms:
        state.lifecycle.timers.arm(asks, now_ms + pause_ms)


def _any_can_be_sent_to(state: NodeState, asks: Asks) -> bool:
    for node_id in asks.by_node:
        peer = state.view.peers.get(node_id)
        if peer is not None and can_be_sent_to(peer):
            return True
    return False
