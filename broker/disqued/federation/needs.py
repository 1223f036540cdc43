"""What this node needs from others: asks for the jobs of queues that its clients found empty (NEEDJOBS).

Two ways, decided per queue however many clients wait: nodes that sent jobs in the last five seconds are asked directly
and for as many as they sent of late or as clients wait, and all others with growing pauses, for one job each. The
pauses are those of Disque (`needJobsForQueue`). The first broadcast goes out at once, further ones after 4, 8, 16 and
then every 30 seconds, as long as somebody waits; nothing is visited in between.

Our nodes remember who asked (`handover`), so these broadcasts only renew what they know: an idle cluster of n nodes
sends (n - 1) / 30 messages per second for each queue that is waited for on a node. Once nobody waited for a second they
are told (ENOUGH). Who comes back soon after is waited for longer the next time, so that clients that poll do not turn
every poll into messages to everybody.

An output pause here also stops asking: jobs fetched into a paused queue would be locked away from clients elsewhere.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.queues.interest import LINGER_MS, SOURCE_MS, Greeting, Needs, Source
from disqued.core.queues.queue import PAUSED_OUT, Queue
from disqued.core.runtime.outbox import send, tell_all
from disqued.core.runtime.state import NodeState

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
_MAX_PATIENCE_MS: Final = 32_000
_QUEUES_PER_GREETING: Final = 1000
_GREETINGS_MS: Final = (0, 1000, 4000)
"""Since a node came back: the first may reach it before it knows this node."""


@mypyc_attr(acyclic=True)
class QueueNeeds(Needs):
    """The needs of one queue, woken when it may be time to ask, or to tell that it is enough."""

    def ring(self, state: NodeState) -> None:
        """Ask if somebody waits; otherwise tell the others so, after a while."""
        queue = state.lifecycle.queues.get(self.name)
        if queue is None or queue.needs is not self:
            return
        now_ms = state.now_ms
        timers = state.lifecycle.timers
        if queue.waiting > 0 and _may_ask(state, queue):
            self.used_ms = now_ms
            _ask(state, queue, self, drained=False)
            timers.arm(self, max(self.next_ms, now_ms + 1))
        elif self.asked_ms > 0 and now_ms < self.used_ms + self.patience_ms:
            timers.arm(self, self.used_ms + self.patience_ms)
        else:
            _enough(state, self)
            if queue.waiting > 0:
                timers.arm(self, now_ms + LINGER_MS)


def queue_empty(state: NodeState, queue: Queue, *, drained: bool) -> None:
    """Clients found nothing in a queue, or took its last job: ask other nodes, if it is time."""
    needs = queue.needs
    now_ms = state.now_ms
    if needs is None:
        if drained or not _may_ask(state, queue):
            return
        needs = needs_of(queue)
    needs.used_ms = now_ms
    if drained:
        if needs.rate(now_ms) == 0:
            return
    elif now_ms < needs.next_ms:
        return
    if not _may_ask(state, queue):
        return
    _ask(state, queue, needs, drained=drained)
    if needs.awake_ms == 0 or needs.awake_ms > needs.next_ms:
        state.lifecycle.timers.arm(needs, max(needs.next_ms, now_ms + 1))


def needs_of(queue: Queue) -> Needs:
    """The needs of a queue, made when missing; rates count from when the queue was made."""
    needs = queue.needs
    if needs is None:
        needs = QueueNeeds(queue.name, queue.created_ms)
        queue.needs = needs
    return needs


def _may_ask(state: NodeState, queue: Queue) -> bool:
    """Neither a node that leaves or ends nor a queue that gives nothing to its clients asks for jobs."""
    return not (state.view.leaving or state.demand.withdrawn or queue.pause & PAUSED_OUT)


def _pause_ms(first_ms: i64, attempts: i64, most_ms: i64) -> i64:
    pause_ms: i64 = first_ms << min(attempts, _MAX_DOUBLINGS)
    return min(pause_ms, most_ms)


def _ask(state: NodeState, queue: Queue, needs: Needs, *, drained: bool) -> None:
    """Ask everybody, or those that sent jobs lately, or both, as the pauses allow (spec of federation, section 4)."""
    now_ms = state.now_ms
    needs.drop_stale_sources(now_ms)
    if now_ms - needs.broadcast_ms > _pause_ms(_BROADCAST_MS, needs.broadcasts, _MAX_BROADCAST_MS):
        needs.broadcast_ms = now_ms
        needs.broadcasts += 1
        _note_asked(state, needs)
        tell_all(state, state.bus.about_queue(kinds.NEEDJOBS, needs.name, 1))
    needs.next_ms = needs.broadcast_ms + _pause_ms(_BROADCAST_MS, needs.broadcasts, _MAX_BROADCAST_MS) + 1
    if not needs.sources:
        return
    if drained:
        if _ask_sources(state, queue, needs, drained=True):
            needs.adhoc_ms = now_ms
            needs.adhocs += 1
    elif now_ms - needs.adhoc_ms > _pause_ms(_ADHOC_MS, needs.adhocs, _MAX_ADHOC_MS):
        _ask_sources(state, queue, needs, drained=False)
        needs.adhoc_ms = now_ms
        needs.adhocs += 1
    adhoc_ms: i64 = needs.adhoc_ms + _pause_ms(_ADHOC_MS, needs.adhocs, _MAX_ADHOC_MS) + 1
    needs.next_ms = min(needs.next_ms, adhoc_ms)


def _ask_sources(state: NodeState, queue: Queue, needs: Needs, *, drained: bool) -> bool:
    """Ask the nodes that sent jobs lately; False when there was no need to ask any.

    After each of its last jobs a queue would ask for more. A node that remembers has not to be asked before it sent
    half of what it was asked for.
    """
    wanted: i64 = max(needs.rate(state.now_ms), queue.waiting) // len(needs.sources)
    count: i64 = min(max(wanted, _MIN_COUNT), MAX_COUNT)
    frame = b""
    for node_id, source in needs.sources.items():
        peer = state.view.peers.get(node_id)
        if peer is None or (drained and peer.features & FEATURE_ENOUGH and source.expected * 2 > count):
            continue
        if not frame:
            frame = state.bus.about_queue(kinds.NEEDJOBS, needs.name, count)
        if send(state, peer, frame):
            source.expected = count
            _note_asked(state, needs)
    return len(frame) > 0


def _note_asked(state: NodeState, needs: Needs) -> None:
    """From now on others may remember that jobs are wanted here."""
    now_ms = state.now_ms
    if needs.asked_ms == 0:
        state.demand.needs += 1
        if needs.enough_ms > 0:
            came_back = now_ms - needs.enough_ms < _MAX_BROADCAST_MS
            needs.patience_ms = min(needs.patience_ms * 2, _MAX_PATIENCE_MS) if came_back else LINGER_MS
    needs.asked_ms = now_ms


def _enough(state: NodeState, needs: Needs) -> None:
    """Have the others forget that jobs were wanted here, and begin anew the next time."""
    if needs.asked_ms == 0:
        return
    _forget_asking(state, needs)
    needs.enough_ms = state.now_ms
    frame = state.bus.about_queue(kinds.ENOUGH, needs.name, 0)
    for peer in state.view.peers.values():
        if peer.features & FEATURE_ENOUGH and not peer.in_handshake:
            send(state, peer, frame)


def _forget_asking(state: NodeState, needs: Needs) -> None:
    state.demand.needs -= 1
    needs.asked_ms = 0
    needs.broadcast_ms = 0
    needs.broadcasts = 0
    needs.adhocs = 0
    needs.next_ms = 0
    for source in needs.sources.values():
        source.expected = 0


def hear_source(state: NodeState, queue: Queue, node_id: bytes, jobs: i64) -> Needs:
    """A node sent jobs of a queue: it is asked directly for more from now on."""
    needs = needs_of(queue)
    now_ms = state.now_ms
    source = needs.sources.get(node_id)
    if source is None or now_ms - source.last_ms > SOURCE_MS:
        source = Source(now_ms)
        needs.sources[node_id] = source
        needs.broadcasts = 0
    source.last_ms = now_ms
    source.expected = max(source.expected - jobs, 0)
    needs.adhocs = 0
    needs.next_ms = 0
    if queue.waiting > 0:
        soon_ms = now_ms + _ADHOC_MS + 1
        if needs.awake_ms == 0 or needs.awake_ms > soon_ms:
            state.lifecycle.timers.arm(needs, soon_ms)
    return needs


def peer_up(state: NodeState, peer: Peer) -> None:
    """A node is there (again), and knows nothing of what is wanted here: tell it."""
    state.demand.greetings[peer.id] = Greeting(state.now_ms)
    go_on_greeting(state)


def go_on_greeting(state: NodeState) -> None:
    """Tell nodes that came back about the next few queues that clients wait for."""
    greetings = state.demand.greetings
    for node_id in list(greetings):
        greeting = greetings[node_id]
        peer = state.view.peers.get(node_id)
        if peer is None or greeting.round >= len(_GREETINGS_MS):
            del greetings[node_id]
        elif state.now_ms - greeting.began_ms >= _GREETINGS_MS[int(greeting.round)]:
            _greet(state, peer, greeting)


def _greet(state: NodeState, peer: Peer, greeting: Greeting) -> None:
    cursor, queues = state.lifecycle.queues.scan(int(greeting.cursor), _QUEUES_PER_GREETING)
    greeting.cursor = cursor
    if cursor == 0:
        greeting.round += 1
    for queue in queues:
        needs = queue.needs
        if (queue.waiting == 0 and (needs is None or needs.asked_ms == 0)) or not _may_ask(state, queue):
            continue
        if needs is None:
            needs = needs_of(queue)
        if needs.asked_ms == 0:
            queue_empty(state, queue, drained=False)
        else:
            send(state, peer, state.bus.about_queue(kinds.NEEDJOBS, queue.name, 1))


def withdraw(state: NodeState) -> None:
    """This node is about to end: others are to send it nothing more, above all no at-most-once job."""
    state.demand.withdrawn = True
    _, queues = state.lifecycle.queues.scan(0, len(state.lifecycle.queues))
    for queue in queues:
        needs = queue.needs
        if needs is not None:
            _enough(state, needs)


def queue_left(state: NodeState, queue: Queue) -> None:
    """The last client that waited for a queue is served or gone: soon check whether its jobs are still wanted."""
    needs = queue.needs
    if needs is not None:
        needs.used_ms = state.now_ms
        soon_ms = state.now_ms + LINGER_MS
        if needs.awake_ms == 0 or needs.awake_ms > soon_ms:
            state.lifecycle.timers.arm(needs, soon_ms)


def queue_gone(state: NodeState, queue: Queue) -> None:
    """Forget what was needed for a queue, and have others forget it."""
    needs = queue.needs
    if needs is not None:
        state.lifecycle.timers.disarm(needs)
        _enough(state, needs)
        queue.needs = None
