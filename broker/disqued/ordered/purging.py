"""QPURGE and QCOUNT of ordered queues: the machine deletes and counts, so all replicas agree at once.

One PURGE looks at a bounded number of jobs, and its result says where the next one continues. Jobs that are added
meanwhile stay: the leader is asked first for the index of the last entry.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.clients.session import Session
from disqued.core.jobs.phases import DEAD_LETTER, DELAYED_HERE, IN_QUEUE, WITH_WORKER
from disqued.core.runtime.state import NodeState
from disqued.counts.qcount import timeout_of
from disqued.counts.qpurge import DEFAULT_PHASES, PurgeOptions
from disqued.ordered.catalog import OrderedQueue
from disqued.ordered.reading import pack_question
from disqued.ordered.requests import COMMAND, READ
from disqued.ordered.results import unpack
from disqued.ordered.room import OrderedRoom, ordered_of
from disqued.ordered.waiting import ClientRequest, Waiting
from disqued.orderedqueue.commands import DEAD_PHASE, DELAYED_PHASE, LEASED_PHASE, QUEUED_PHASE, Purge
from disqued.resp.writer import array_header, bulk, integer

_PHASES: Final[dict[int, i64]] = {
    IN_QUEUE: QUEUED_PHASE,
    WITH_WORKER: LEASED_PHASE,
    DELAYED_HERE: DELAYED_PHASE,
    DEAD_LETTER: DEAD_PHASE,
}


class _PurgeRequest(ClientRequest):
    """One part of a purge."""

    def __init__(
        self, room: OrderedRoom, waiting: Waiting, queue: OrderedQueue, purge: Purge, deleted: int, deadline_ms: i64
    ) -> None:
        super().__init__(room, waiting, queue.name, COMMAND, purge.encode(), deadline_ms, repeated=True)
        self._queue = queue
        self._purge = purge
        self._deleted = deleted

    def done(self, result: bytes) -> None:
        """Continue, or reply. All replicas delete the same jobs, so all of them count as nodes that answered."""
        told = unpack(result)
        deleted = self._deleted + int(told.value)
        purge = self._purge
        if told.next_index > 0:
            rest = Purge(purge.phases, purge.before_ms, told.next_index, purge.last)
            request = _PurgeRequest(self.room, self.waiting, self._queue, rest, deleted, self.deadline_ms)
            self.room.clients.client(self._queue.group).submit(request)
            return
        replicas = integer(len(self._queue.replicas))
        names = (b"deleted", b"nodes-answered", b"nodes-known")
        values = (integer(deleted), replicas, replicas)
        parts = [bulk(name) + value for name, value in zip(names, values, strict=True)]
        self.waiting.finish(array_header(2 * len(names)) + b"".join(parts))


class _IndexRequest(ClientRequest):
    """Asks which entry is the last one."""

    def __init__(
        self, room: OrderedRoom, waiting: Waiting, queue: OrderedQueue, phases: i64, before_ms: i64, deadline_ms: i64
    ) -> None:
        super().__init__(room, waiting, queue.name, READ, pack_question([b"index"]), deadline_ms, repeated=True)
        self._queue = queue
        self._phases: i64 = phases
        self._before_ms: i64 = before_ms

    def done(self, result: bytes) -> None:
        """Purge up to that entry."""
        purge = Purge(self._phases, self._before_ms, 0, max(int(result[1:-2]), 1))
        request = _PurgeRequest(self.room, self.waiting, self._queue, purge, 0, self.deadline_ms)
        self.room.clients.client(self._queue.group).submit(request)


def qpurge(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Delete the jobs of an ordered queue; False if the queue is none."""
    room = ordered_of(state)
    queue = room.catalog.by_name.get(args[1])
    if queue is None:
        return False
    options = PurgeOptions(int(state.now_ms))
    options.read(args[2:])
    phases: i64 = 0
    for phase in options.phases or DEFAULT_PHASES:
        phases |= _PHASES.get(phase, 0)
    waiting = Waiting(state, session)
    waiting.begin()
    deadline_ms: i64 = state.now_ms + options.timeout_ms
    request = _IndexRequest(room, waiting, queue, phases, options.before_ms or 0, deadline_ms)
    room.clients.client(queue.group).submit(request)
    return True


def qcount(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Count the jobs of an ordered queue; False if the queue is none."""
    room = ordered_of(state)
    queue = room.catalog.by_name.get(args[1])
    if queue is None:
        return False
    deadline_ms: i64 = state.now_ms + timeout_of(args[2:])
    waiting = Waiting(state, session)
    waiting.begin()
    question = pack_question([b"qcount"])
    request = ClientRequest(room, waiting, queue.name, READ, question, deadline_ms, repeated=True)
    room.clients.client(queue.group).submit(request)
    return True
