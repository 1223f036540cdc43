"""Import requests: ask other nodes for jobs of queues that clients found empty here (NEEDJOBS).

A queue asks in two ways, however many clients wait. Nodes that sent jobs in the last five seconds are asked directly,
for as many jobs as they sent recently or as clients wait. All other nodes are asked with growing pauses, for one job
each. The pauses are those of Disque (`needJobsForQueue`): the first broadcast is sent at once, further ones after 4, 8
and 16 seconds and then every 30 seconds, while clients wait. Nothing is polled in between.

Our nodes remember requests (`exporting`), so these broadcasts only renew them: an idle cluster of n nodes sends
(n - 1) / 30 messages per second for each queue that clients wait for on a node. When no client has waited for a second,
the nodes are told (ENOUGH). If a client returns soon after that, the node waits longer the next time, so that clients
that poll do not cause messages to all nodes with every poll.

An output pause of the queue also stops asking: imported jobs would be locked away from clients elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.queues.queue import PAUSED_OUT, Queue
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState
from disqued.federation.interest import (
    IDLE_TIMEOUT_MS,
    SOURCE_MS,
    Imports,
    PeerSync,
    Source,
    federation_of,
    imports_of,
    interest_of,
)

FEATURE_ENOUGH: Final = 2
"""Remembers which nodes need jobs, until ENOUGH."""
MAX_COUNT: Final = 100
"""More than that is never asked for: it would overrun a buffer of the original's nodes."""
_MIN_COUNT: Final = 5
_BROADCAST_MS: Final = 2000
_MAX_BROADCAST_MS: Final = 30_000
_ADHOC_MS: Final = 25
_MAX_ADHOC_MS: Final = 2000
_MAX_DOUBLINGS: Final = 8
"""Beyond it both pauses have long reached their bounds."""
_MAX_IDLE_TIMEOUT_MS: Final = 32_000
_QUEUES_PER_PART: Final = 1000
_SYNCS_MS: Final = (0, 1000, 4000)
"""Times of the rounds after a node connected: the first may arrive before that node knows this one."""


@mypyc_attr(acyclic=True)
class QueueImports(Imports):
    """The import requests of one queue, woken when it may be time to ask, or to send ENOUGH."""

    def ring(self, state: NodeState) -> None:
        """Ask if clients wait; otherwise, after a while, tell the other nodes that they do not."""
        queue = state.lifecycle.queues.get(self.name)
        if queue is None or imports_of(queue) is not self:
            return
        now_ms = state.now_ms
        timers = state.lifecycle.timers
        if queue.waiting > 0 and _may_ask(state, queue):
            self.used_ms = now_ms
            _ask(state, queue, self, drained=False)
            timers.arm(self, max(self.next_ms, now_ms + 1))
        elif self.asked_ms > 0 and now_ms < self.used_ms + self.idle_timeout_ms:
            timers.arm(self, self.used_ms + self.idle_timeout_ms)
        else:
            _enough(state, self)
            if queue.waiting > 0:
                timers.arm(self, now_ms + IDLE_TIMEOUT_MS)


def queue_empty(state: NodeState, queue: Queue, *, drained: bool) -> None:
    """Ask other nodes, if it is time: clients found a queue empty or took its last job (`drained`)."""
    imports = imports_of(queue)
    now_ms = state.now_ms
    if imports is None:
        if drained or not _may_ask(state, queue):
            return
        imports = started_imports(queue)
    imports.used_ms = now_ms
    if drained:
        if imports.rate(now_ms) == 0:
            return
    elif now_ms < imports.next_ms:
        return
    if not _may_ask(state, queue):
        return
    _ask(state, queue, imports, drained=drained)
    if imports.awake_ms == 0 or imports.awake_ms > imports.next_ms:
        state.lifecycle.timers.arm(imports, max(imports.next_ms, now_ms + 1))


def started_imports(queue: Queue) -> Imports:
    """The import requests of a queue, created if they do not exist; rates count from the creation of the queue."""
    interest = interest_of(queue)
    imports = interest.imports
    if imports is None:
        imports = QueueImports(queue.name, queue.created_ms)
        interest.imports = imports
    return imports


def _may_ask(state: NodeState, queue: Queue) -> bool:
    """Whether to ask: not while the node leaves or shuts down, nor for a queue that is paused in output or has jobs.

    Clients that wait although there are jobs wait for tokens (`Queue.limiter`).
    """
    return not (state.view.leaving or federation_of(state).withdrawn or queue.pause & PAUSED_OUT or queue.length > 0)


def _pause_ms(first_ms: i64, attempts: i64, most_ms: i64) -> i64:
    pause_ms: i64 = first_ms << min(attempts, _MAX_DOUBLINGS)
    return min(pause_ms, most_ms)


def _ask(state: NodeState, queue: Queue, imports: Imports, *, drained: bool) -> None:
    """Ask all nodes, or recent sources, or both, as the pauses allow (spec of federation, section 4)."""
    now_ms = state.now_ms
    imports.drop_stale_sources(now_ms)
    if now_ms - imports.broadcast_ms > _pause_ms(_BROADCAST_MS, imports.broadcasts, _MAX_BROADCAST_MS):
        imports.broadcast_ms = now_ms
        imports.broadcasts += 1
        _note_asked(state, imports)
        _ask_all(state, imports)
    imports.next_ms = imports.broadcast_ms + _pause_ms(_BROADCAST_MS, imports.broadcasts, _MAX_BROADCAST_MS) + 1
    if not imports.sources:
        return
    if drained:
        if _ask_sources(state, queue, imports, drained=True):
            imports.adhoc_ms = now_ms
            imports.adhocs += 1
    elif now_ms - imports.adhoc_ms > _pause_ms(_ADHOC_MS, imports.adhocs, _MAX_ADHOC_MS):
        _ask_sources(state, queue, imports, drained=False)
        imports.adhoc_ms = now_ms
        imports.adhocs += 1
    adhoc_ms: i64 = imports.adhoc_ms + _pause_ms(_ADHOC_MS, imports.adhocs, _MAX_ADHOC_MS) + 1
    imports.next_ms = min(imports.next_ms, adhoc_ms)


def _ask_all(state: NodeState, imports: Imports) -> None:
    """Ask all nodes for a job. A node with a congested link is asked in a peer sync, some queues at a time.

    Clients may wait for hundreds of thousands of queues, and the messages for them would overflow the links.
    """
    frame = state.bus.about_queue(kinds.NEEDJOBS, imports.name, 1)
    syncs = federation_of(state).syncs
    for peer in state.view.peers.values():
        link = peer.link
        if peer.in_handshake or link is None:
            continue
        if not link.congested:
            send(state, peer, frame)
        elif peer.id not in syncs:
            syncs[peer.id] = PeerSync(state.now_ms)


def _ask_sources(state: NodeState, queue: Queue, imports: Imports, *, drained: bool) -> bool:
    """Ask recent sources; returns False if no source had to be asked.

    A drained queue would ask after each of its last jobs. A node that remembers requests is asked again only when it
    has sent half of the previous one.
    """
    wanted: i64 = max(imports.rate(state.now_ms), queue.waiting) // len(imports.sources)
    count: i64 = min(max(wanted, _MIN_COUNT), MAX_COUNT)
    frame = b""
    for node_id, source in imports.sources.items():
        peer = state.view.peers.get(node_id)
        if peer is None or _is_congested(peer):
            continue
        if drained and peer.features & FEATURE_ENOUGH and source.expected * 2 > count:
            continue
        if not frame:
            frame = state.bus.about_queue(kinds.NEEDJOBS, imports.name, count)
        if send(state, peer, frame):
            source.expected = count
            _note_asked(state, imports)
    return len(frame) > 0


def _is_congested(peer: Peer) -> bool:
    link = peer.link
    return link is not None and link.congested


def _note_asked(state: NodeState, imports: Imports) -> None:
    """Note that other nodes may remember from now on that jobs are wanted here."""
    now_ms = state.now_ms
    if imports.asked_ms == 0:
        federation_of(state).imported_queues += 1
        if imports.enough_ms > 0:
            came_back = now_ms - imports.enough_ms < _MAX_BROADCAST_MS
            imports.idle_timeout_ms = (
                min(imports.idle_timeout_ms * 2, _MAX_IDLE_TIMEOUT_MS) if came_back else IDLE_TIMEOUT_MS
            )
    imports.asked_ms = now_ms


def _enough(state: NodeState, imports: Imports) -> None:
    """Withdraw the requests at all other nodes, and start from scratch the next time."""
    if imports.asked_ms == 0:
        return
    _forget_asking(state, imports)
    imports.enough_ms = state.now_ms
    frame = state.bus.about_queue(kinds.ENOUGH, imports.name, 0)
    for peer in state.view.peers.values():
        if peer.features & FEATURE_ENOUGH and not peer.in_handshake and not _is_congested(peer):
            send(state, peer, frame)


def _forget_asking(state: NodeState, imports: Imports) -> None:
    federation_of(state).imported_queues -= 1
    imports.asked_ms = 0
    imports.broadcast_ms = 0
    imports.broadcasts = 0
    imports.adhocs = 0
    imports.next_ms = 0
    for source in imports.sources.values():
        source.expected = 0


def record_source(state: NodeState, queue: Queue, node_id: bytes, jobs: i64) -> Imports:
    """Record a node as a source of jobs: it is asked directly for more from now on."""
    imports = started_imports(queue)
    now_ms = state.now_ms
    source = imports.sources.get(node_id)
    if source is None or now_ms - source.last_ms > SOURCE_MS:
        source = Source(now_ms)
        imports.sources[node_id] = source
        imports.broadcasts = 0
        imports.next_ms = 0
    source.last_ms = now_ms
    source.expected = max(source.expected - jobs, 0)
    imports.adhocs = 0
    imports.next_ms = min(imports.next_ms, imports.adhoc_ms + _ADHOC_MS + 1)
    if queue.waiting > 0:
        soon_ms = now_ms + _ADHOC_MS + 1
        if imports.awake_ms == 0 or imports.awake_ms > soon_ms:
            state.lifecycle.timers.arm(imports, soon_ms)
    return imports


def peer_up(state: NodeState, peer: Peer) -> None:
    """Start a peer sync: the node connected (again) and does not know which jobs are wanted here."""
    federation_of(state).syncs[peer.id] = PeerSync(state.now_ms)
    continue_syncs(state)


def continue_syncs(state: NodeState) -> None:
    """Continue the peer syncs with the next few queues that clients wait for."""
    syncs = federation_of(state).syncs
    for node_id in list(syncs):
        sync = syncs[node_id]
        peer = state.view.peers.get(node_id)
        if peer is None or sync.round >= len(_SYNCS_MS):
            del syncs[node_id]
        elif _is_congested(peer):
            continue
        elif state.now_ms - sync.began_ms >= _SYNCS_MS[int(sync.round)]:
            _sync(state, peer, sync)


def _sync(state: NodeState, peer: Peer, sync: PeerSync) -> None:
    cursor, queues = state.lifecycle.queues.scan(int(sync.cursor), _QUEUES_PER_PART)
    sync.cursor = cursor
    if cursor == 0:
        sync.round += 1
    for queue in queues:
        imports = imports_of(queue)
        if (queue.waiting == 0 and (imports is None or imports.asked_ms == 0)) or not _may_ask(state, queue):
            continue
        if imports is None:
            imports = started_imports(queue)
        if imports.asked_ms == 0:
            queue_empty(state, queue, drained=False)
        else:
            send(state, peer, state.bus.about_queue(kinds.NEEDJOBS, queue.name, 1))


def withdraw(state: NodeState) -> Iterator[None]:
    """Withdraw all requests before the node shuts down, so that no at-most-once job is sent to it any more.

    Yields after each part of the queues, so that the caller can let the node serve its clients in between.
    """
    federation_of(state).withdrawn = True
    cursor = 0
    while True:
        cursor, queues = state.lifecycle.queues.scan(cursor, _QUEUES_PER_PART)
        for queue in queues:
            imports = imports_of(queue)
            if imports is not None:
                _enough(state, imports)
        if cursor == 0:
            return
        yield


def queue_left(state: NodeState, queue: Queue) -> None:
    """Check soon whether jobs are still wanted: the last client that waited for the queue was served or has gone."""
    imports = imports_of(queue)
    if imports is not None:
        imports.used_ms = state.now_ms
        soon_ms = state.now_ms + IDLE_TIMEOUT_MS
        if imports.awake_ms == 0 or imports.awake_ms > soon_ms:
            state.lifecycle.timers.arm(imports, soon_ms)


def queue_gone(state: NodeState, queue: Queue) -> None:
    """Withdraw the requests for a queue that is removed."""
    imports = imports_of(queue)
    if imports is not None:
        state.lifecycle.timers.disarm(imports)
        _enough(state, imports)
        interest_of(queue).imports = None
