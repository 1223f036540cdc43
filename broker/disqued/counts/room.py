"""The counts room of one node: counts its own jobs, and asks the other nodes for theirs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.outbox import send
from disqued.core.runtime.room import Room
from disqued.counts.collecting import Collection, Collections
from disqued.counts.counting import Counting
from disqued.counts.payload import JOBS, Question, pack_answer

if TYPE_CHECKING:
    from mypy_extensions import i64

    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

NAME: Final = "counts"


class CountsRoom(Room):
    """Counts jobs on one node, and over all nodes."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.counting = Counting(state)
        self.collections = Collections(state)

    def deadline_ms(self) -> i64:
        """At once while jobs are counted."""
        return self.state.now_ms if self.counting.active else 0

    def due(self) -> None:
        """Count some jobs."""
        if not self.state.loading:
            self.counting.proceed()

    def cron(self) -> None:
        """End what takes too long."""
        self.counting.forget_old()
        self.collections.visit()

    def all_dropped(self) -> None:
        """Count again."""
        self.counting.clear()

    def ask_all(self, queue: bytes, timeout_ms: int) -> Collection:
        """Ask all nodes, this one too, for the number of jobs of a queue."""
        collection = self.collections.ask(JOBS, 0, queue, timeout_ms)
        self.counting.count(queue, partial(collection.add, self.state.view.node_id))
        self.counting.proceed()
        return collection

    def answer(self, asker: Peer, question: Question) -> None:
        """Count for another node."""
        self.counting.count(question.queue, partial(self._tell, asker.id, question.number))

    def _tell(self, node_id: bytes, number: int, figures: list[int]) -> None:
        peer = self.state.view.peers.get(node_id)
        if peer is not None:
            send(self.state, peer, self.state.bus.other(kinds.COUNTED, pack_answer(number, figures)))


def counts_of(state: NodeState) -> CountsRoom:
    """The counts room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, CountsRoom)
    return room
