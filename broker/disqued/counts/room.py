"""The counts room of one node: counts and deletes its own jobs of a queue, and asks the other nodes for theirs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.outbox import send
from disqued.core.runtime.room import Room
from disqued.counts.collecting import Collection, Collections
from disqued.counts.counting import Counting
from disqued.counts.payload import JOBS, PURGED, Question, pack_answer
from disqued.counts.purging import Purging

if TYPE_CHECKING:
    from mypy_extensions import i64

    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

NAME: Final = "counts"


class CountsRoom(Room):
    """Counts and deletes jobs on one node, and adds up what all nodes did."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.counting = Counting(state)
        self.collections = Collections(state)
        self.purging = Purging(state, self.counting)

    def deadline_ms(self) -> i64:
        """At once while jobs are counted or deleted."""
        return self.state.now_ms if self.counting.active else self.purging.next_ms()

    def due(self) -> None:
        """Delete some jobs, and count some."""
        state = self.state
        if state.loading or state.ending:
            return
        if 0 < self.purging.next_ms() <= state.now_ms:
            self.purging.proceed()
        self.counting.proceed()

    def cron(self) -> None:
        """End what takes too long."""
        self.counting.forget_old()
        self.collections.visit()
        self.purging.forget_old()

    def all_dropped(self) -> None:
        """Count again, and apply all marks to the jobs that are loaded."""
        self.counting.clear()
        self.purging.again()

    def ask_purged(self, queue: bytes, version: int, timeout_ms: int) -> Collection:
        """Ask all nodes, this one too, for the number of jobs that a purge deleted."""
        collection = self.collections.ask(PURGED, version, queue, timeout_ms)
        self.purging.ask(queue, version, partial(collection.add, self.state.view.node_id))
        self.purging.proceed()
        return collection

    def ask_jobs(self, queue: bytes, timeout_ms: int) -> Collection:
        """Ask all nodes, this one too, for the number of jobs of a queue."""
        collection = self.collections.ask(JOBS, 0, queue, timeout_ms)
        self.counting.count(queue, partial(collection.add, self.state.view.node_id))
        self.counting.proceed()
        return collection

    def answer(self, asker: Peer, question: Question) -> None:
        """Count for another node."""
        answer = partial(self._tell, asker.id, question.number)
        if question.what == PURGED:
            self.purging.ask(question.queue, question.version, answer)
        else:
            self.counting.count(question.queue, answer)

    def _tell(self, node_id: bytes, number: int, figures: list[int]) -> None:
        peer = self.state.view.peers.get(node_id)
        if peer is not None:
            send(self.state, peer, self.state.bus.other(kinds.COUNTED, pack_answer(number, figures)))


def counts_of(state: NodeState) -> CountsRoom:
    """The counts room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, CountsRoom)
    return room
