"""The room of the patterns of one node: announces them, names matching queues to other nodes, and asks for their jobs.

A node announces the patterns that its clients wait for (PATTERNS) to nodes with the feature: at once when the set
changes, once per second while clients begin to wait, and every ten seconds. A node with jobs in a matching queue, which
no client takes there, answers with the name (QUEUENAME), again when the queue was empty in between, and after each
announcement. The first node then asks for jobs of the queue as if a client had found it empty (NEEDJOBS). So any of
these messages can be lost: the next announcement repeats what matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.memory.accounting import FULL
from disqued.core.queues.patterns import MOST_ELSEWHERE, MOST_LOCAL, QueuePattern, is_waited_for
from disqued.core.queues.queue import PAUSED_OUT, Queue
from disqued.core.runtime.outbox import send
from disqued.core.runtime.room import Room
from disqued.patterns.payload import pack

if TYPE_CHECKING:
    from mypy_extensions import i64

    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

NAME: Final = "patterns"
FEATURE_PATTERNS: Final = 1024
"""Understands PATTERNS and QUEUENAME."""
REPEAT_MS: Final = 10_000
"""How often the patterns are announced while clients wait."""
FORGET_MS: Final = 30_000
"""How long the announcement of another node counts."""
LINGER_MS: Final = 2000
"""How long a pattern is announced after the last client waited for it: workers come back."""
ASK_AGAIN_MS: Final = 1000
"""How often clients that begin to wait cause an announcement."""
NAMES_PER_VISIT: Final = 64
"""How many queues of a pattern are named to other nodes, or asked for, at a time."""
_AGAIN_MS: Final = 20
_CONGESTED_MS: Final = 200


class PatternsRoom(Room):
    """What one node tells others about patterns, and what it heard."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self._announced: tuple[bytes, ...] = ()
        self._announced_ms = 0

    # --- events -------------------------------------------------------------------------------------------------------

    def deadline_ms(self) -> i64:
        """When there is something to do."""
        return self.state.lifecycle.patterns.due_ms

    def due(self) -> None:
        """Match, name and ask for some queues."""
        state = self.state
        known = state.lifecycle.patterns
        if known.due_ms == 0 or known.due_ms > state.now_ms:
            return
        known.due_ms = 0
        for pattern in list(known.live):
            if pattern.cursor != 0:
                self._match(pattern)
            if pattern.fresh:
                self._name(pattern)
            if pattern.elsewhere and pattern.waiters:
                self._ask(pattern)
        self._announce()

    def cron(self) -> None:
        """Announce again, and end what nobody uses."""
        state = self.state
        known = state.lifecycle.patterns
        if not known.live and not self._announced:
            return
        oldest_ms = int(state.now_ms) - FORGET_MS
        for pattern in known.live:
            for node_id in [node_id for node_id, said_ms in pattern.peers.items() if said_ms < oldest_ms]:
                del pattern.peers[node_id]
            if pattern.waiters or pattern.peers:
                pattern.used_ms = state.now_ms
        known.end_unused(state.now_ms)
        self._announce()

    def peer_up(self, peer: Peer) -> None:
        """Tell the node the patterns."""
        if self._announced and peer.features & FEATURE_PATTERNS:
            send(self.state, peer, self.state.bus.other(kinds.PATTERNS, pack(self._announced)))

    def peer_forgotten(self, peer: Peer) -> None:
        """Forget its patterns."""
        for pattern in self.state.lifecycle.patterns.live:
            pattern.peers.pop(peer.id, None)

    # --- what other nodes are told ------------------------------------------------------------------------------------

    def _announce(self) -> None:
        """Announce the patterns, if it is time."""
        state = self.state
        view = state.view
        if not view.peers:
            self._announced = ()
            return
        now_ms = int(state.now_ms)
        texts: set[bytes] = set()
        asked = False
        for pattern in state.lifecycle.patterns.live:
            if pattern.waiters or (pattern.local_ms > 0 and now_ms - pattern.local_ms < LINGER_MS):
                texts.add(pattern.text)
                asked = asked or pattern.asked
        wanted = () if view.leaving else tuple(sorted(texts)[:MOST_LOCAL])
        age_ms = now_ms - self._announced_ms
        if wanted == self._announced and not (wanted and (age_ms >= REPEAT_MS or (asked and age_ms >= ASK_AGAIN_MS))):
            return
        self._announced = wanted
        self._announced_ms = now_ms
        for pattern in state.lifecycle.patterns.live:
            pattern.asked = False
        frame = state.bus.other(kinds.PATTERNS, pack(wanted))
        for peer in view.peers.values():
            if peer.features & FEATURE_PATTERNS and not peer.in_handshake:
                send(state, peer, frame)

    def _match(self, pattern: QueuePattern) -> None:
        """Match a new pattern with some more queues."""
        lifecycle = self.state.lifecycle
        for queue in lifecycle.patterns.match_part(pattern, lifecycle.queues, self.state.now_ms):
            if pattern.waiters:
                lifecycle.offer(queue)

    def _name(self, pattern: QueuePattern) -> None:
        """Name some queues with jobs to the nodes that wait for the pattern."""
        state = self.state
        known = state.lifecycle.patterns
        peers = [peer for node_id in pattern.peers if (peer := state.view.peers.get(node_id)) is not None]
        if any(peer.link is not None and peer.link.congested for peer in peers):
            known.wake(state.now_ms + _CONGESTED_MS)
            return
        for _ in range(NAMES_PER_VISIT):
            if not pattern.fresh:
                return
            name, queue = pattern.fresh.popitem(last=False)
            if _is_spare(queue):
                frame = state.bus.about_queue(kinds.QUEUENAME, name, 0)
                for peer in peers:
                    send(state, peer, frame)
        known.wake(state.now_ms + _AGAIN_MS)

    # --- what this node heard -----------------------------------------------------------------------------------------

    def hear(self, peer: Peer, texts: list[bytes]) -> None:
        """A node announced all patterns that its clients wait for: name queues with jobs, some for each pattern."""
        state = self.state
        known = state.lifecycle.patterns
        for pattern in known.live:
            if peer.id in pattern.peers and pattern.text not in texts:
                del pattern.peers[peer.id]
        for text in texts:
            found = known.find(state.lifecycle.queues, text, b"", None, state.now_ms)
            if found is None:
                return
            found.peers[peer.id] = int(state.now_ms)
            for name in _first(found):
                found.fresh[name] = found.ready[name]
        known.wake(state.now_ms)

    def hear_name(self, name: bytes) -> None:
        """Another node has jobs of a queue that matches a pattern which was announced."""
        known = self.state.lifecycle.patterns
        for pattern in known.live:
            if (pattern.waiters or pattern.local_ms > 0) and pattern.matches(name):
                pattern.elsewhere[name] = None
                if len(pattern.elsewhere) > MOST_ELSEWHERE:
                    pattern.elsewhere.popitem(last=False)
                if pattern.waiters:
                    known.wake(self.state.now_ms)

    def _ask(self, pattern: QueuePattern) -> None:
        """Ask other nodes for jobs of some of the queues that they named."""
        state = self.state
        lifecycle = state.lifecycle
        for _ in range(NAMES_PER_VISIT):
            if not pattern.elsewhere:
                return
            if lifecycle.memory.level() >= FULL:
                pattern.elsewhere.clear()
                return
            name, _ = pattern.elsewhere.popitem(last=False)
            queue = lifecycle.make_queue(name, state.now_ms)
            queue.visited_ms = state.now_ms
            if queue.length == 0:
                state.events.queue_visited(queue, drained=False)
        lifecycle.patterns.wake(state.now_ms + _AGAIN_MS)


def _first(pattern: QueuePattern) -> list[bytes]:
    """The names of the first queues with jobs; the next time others are first."""
    names: list[bytes] = []
    for name in pattern.ready:
        names.append(name)
        if len(names) == NAMES_PER_VISIT:
            break
    for name in names:
        pattern.ready.move_to_end(name)
    return names


def _is_spare(queue: Queue) -> bool:
    """Whether a queue has jobs that no client here waits for."""
    if queue.length == 0 or queue.waiting > 0 or queue.pause & PAUSED_OUT:
        return False
    return not is_waited_for(queue)


def patterns_of(state: NodeState) -> PatternsRoom:
    """The room of the patterns of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, PatternsRoom)
    return room
