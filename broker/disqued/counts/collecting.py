"""The questions of one node to all others, and their sums.

A node that cannot be reached, is of another kind, or takes longer than the timeout is missing in the sum; the reply
says how many answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.outbox import send
from disqued.counts.payload import Question, pack_question

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

FEATURE_COUNTS: Final = 512
"""Understands COUNTASK and COUNTED."""
_NUMBERS: Final = 1 << 32


class Collection:
    """One question: the nodes that may still answer, and the sum of the answers."""

    def __init__(self, number: int, missing: set[bytes], known: int, deadline_ms: int) -> None:
        self.number = number
        self.missing = missing
        """The IDs of the nodes from which an answer may still come."""
        self.known = known
        """The number of members, this node included."""
        self.deadline_ms = deadline_ms
        self.answered = 0
        self.figures: list[int] = []
        """The sums."""

    def add(self, node_id: bytes, figures: list[int]) -> None:
        """Add the answer of a node; a second answer is ignored."""
        if node_id not in self.missing:
            return
        self.missing.discard(node_id)
        self.answered += 1
        self.figures += [0] * (len(figures) - len(self.figures))
        for at, figure in enumerate(figures):
            self.figures[at] += figure

    def is_over(self, now_ms: int) -> bool:
        """Whether no further answer is waited for."""
        return not self.missing or now_ms >= self.deadline_ms


class Collections:
    """All questions of one node that are not answered yet."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._open: dict[int, Collection] = {}
        """By number."""
        self._last = 0

    def ask(self, what: int, version: int, queue: bytes, timeout_ms: int) -> Collection:
        """Ask all nodes that can answer. The caller adds the answer of this node, and asks whether it is over."""
        state = self._state
        self._last = self._last % (_NUMBERS - 1) + 1
        number = self._last
        frame = state.bus.other(kinds.COUNTASK, pack_question(Question(number, what, version, queue)))
        asked = {
            peer.id
            for peer in state.view.reachable
            if peer.features & FEATURE_COUNTS and peer.connected and send(state, peer, frame)
        }
        collection = Collection(
            number, asked | {state.view.node_id}, int(state.view.size), int(state.now_ms) + timeout_ms
        )
        self._open[number] = collection
        return collection

    def take(self, sender: Peer, number: int, figures: list[int]) -> None:
        """Add the answer of another node, if it was asked and the question is still open."""
        collection = self._open.get(number)
        if collection is not None:
            collection.add(sender.id, figures)

    def visit(self) -> None:
        """End questions whose time is over, and wait no longer for nodes that cannot be reached any more."""
        if not self._open:
            return
        state = self._state
        now_ms = int(state.now_ms)
        there = {peer.id for peer in state.view.reachable if peer.connected} | {state.view.node_id}
        for collection in list(self._open.values()):
            collection.missing &= there
            if collection.is_over(now_ms):
                del self._open[collection.number]
