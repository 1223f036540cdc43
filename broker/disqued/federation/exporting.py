"""Exports: requests of other nodes are remembered, so that a later job goes at once to where a client waits for it.

The part of a NEEDJOBS that cannot be served is kept with the queue until it is used up, withdrawn (ENOUGH) or 40
seconds old, which is longer than the longest pause of a node that asks. Jobs go to the nodes in the order in which they
asked, one in turn, after the clients that wait here.

Jobs use up requests, so no job travels forever. A queue that imports exports only jobs that no client took within
50 ms; otherwise two nodes that both asked would exchange them forever.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.queues.queue import PAUSED_OUT, Queue
from disqued.core.runtime.state import NodeState
from disqued.federation.interest import Request, Requests, federation_of, imports_of, interest_of, requests_of
from disqued.federation.jobbatch import JobBatch, can_be_sent_to

REQUEST_MS: Final = 40_000
"""How long a request is remembered."""
KEEP_MS: Final = 50
"""How long jobs stay that this node needs itself, and how soon the remaining ones are considered again."""
_BLOCKED_MS: Final = 200
"""The time to the next attempt while the queue is paused or no node that asked can be reached."""


@mypyc_attr(acyclic=True)
class QueueRequests(Requests):
    """The requests for one queue, woken when some become outdated or jobs remain."""

    def ring(self, state: NodeState) -> None:
        """Send jobs and drop outdated requests."""
        queue = state.lifecycle.queues.get(self.name)
        if queue is None or requests_of(queue) is not self:
            return
        _drop_old(state, self)
        _serve(state, queue, self)
        _arm(state, queue, self)


def remember(state: NodeState, peer: Peer, name: bytes, count: i64) -> None:
    """Remember that a node wants `count` jobs, unless this node is short of memory."""
    lifecycle = state.lifecycle
    if lifecycle.memory.level() > 0 and lifecycle.queues.get(name) is None:
        return
    queue = lifecycle.make_queue(name, state.now_ms)
    interest = interest_of(queue)
    requests = interest.requests
    if requests is None:
        requests = QueueRequests(queue.name)
        interest.requests = requests
        interest.wanted = True
        federation_of(state).requested_queues += 1
    request = requests.by_node.get(peer.id)
    if request is None:
        requests.by_node[peer.id] = Request(count, state.now_ms)
    else:
        request.count = max(request.count, count)
        request.asked_ms = state.now_ms
    _arm(state, queue, requests)


def forget(state: NodeState, queue: Queue, node_id: bytes) -> None:
    """Forget the request of a node."""
    requests = requests_of(queue)
    if requests is not None and requests.by_node.pop(node_id, None) is not None and not requests.by_node:
        forget_all(state, queue)


def forget_all(state: NodeState, queue: Queue) -> None:
    """Forget all requests for a queue."""
    requests = requests_of(queue)
    if requests is not None:
        state.lifecycle.timers.disarm(requests)
        interest = interest_of(queue)
        interest.requests = None
        interest.wanted = False
        federation_of(state).requested_queues -= 1


def export(state: NodeState) -> None:
    """Send jobs that no client waits for here to the nodes that asked for them."""
    wanted = state.lifecycle.wanted
    for queue in wanted:
        interest_of(queue).listed = False
        requests = requests_of(queue)
        if requests is not None and queue.length > 0:
            _serve(state, queue, requests)
            _arm(state, queue, requests)
    wanted.clear()


def peer_forgotten(state: NodeState, peer: Peer) -> None:
    """Stop the peer sync with a node; its requests are dropped when their queue is served."""
    federation_of(state).syncs.pop(peer.id, None)


def _is_needed_here(state: NodeState, queue: Queue) -> bool:
    """Whether the queue imports jobs and clients here took or asked for some a moment ago."""
    imports = imports_of(queue)
    if imports is None or imports.rate(state.now_ms) == 0:
        return False
    return state.now_ms - max(imports.used_ms, imports.imported_ms) < KEEP_MS


def _serve(state: NodeState, queue: Queue, requests: Requests) -> None:
    """Distribute the jobs of a queue among the nodes that asked, one to each in turn."""
    if queue.spare == 0 or queue.pause & PAUSED_OUT or _is_needed_here(state, queue):
        return
    batches: list[JobBatch] = []
    for node_id, request in requests.by_node.items():
        peer = state.view.peers.get(node_id)
        if peer is not None and can_be_sent_to(peer):
            batches.append(JobBatch(state, peer, request.count))
    filling = batches
    while filling and queue.spare > 0:
        filling = [batch for batch in filling if queue.spare > 0 and batch.take(state, queue)]
    for batch in batches:
        if batch.jobs > 0:
            request = requests.by_node.pop(batch.peer.id)
            request.count -= batch.jobs
            if request.count > 0:
                requests.by_node[batch.peer.id] = request
            batch.send(state)


def _drop_old(state: NodeState, requests: Requests) -> None:
    """Drop outdated requests, and those of nodes that left or are leaving."""
    old: list[bytes] = []
    for node_id, request in requests.by_node.items():
        peer = state.view.peers.get(node_id)
        if peer is None or peer.flags & kinds.NODE_LEAVING or state.now_ms - request.asked_ms >= REQUEST_MS:
            old.append(node_id)
    for node_id in old:
        del requests.by_node[node_id]


def _arm(state: NodeState, queue: Queue, requests: Requests) -> None:
    """Set the next wake time: soon if there are jobs, otherwise when the requests expire."""
    if not requests.by_node:
        forget_all(state, queue)
        return
    now_ms = state.now_ms
    pause_ms: i64 = REQUEST_MS
    if queue.length > 0:
        blocked = queue.waiting > 0 or queue.pause & PAUSED_OUT != 0 or not _any_can_be_sent_to(state, requests)
        pause_ms = _BLOCKED_MS if blocked else KEEP_MS
    if requests.awake_ms == 0 or requests.awake_ms > now_ms + pause_ms:
        state.lifecycle.timers.arm(requests, now_ms + pause_ms)


def _any_can_be_sent_to(state: NodeState, requests: Requests) -> bool:
    for node_id in requests.by_node:
        peer = state.view.peers.get(node_id)
        if peer is not None and can_be_sent_to(peer):
            return True
    return False
