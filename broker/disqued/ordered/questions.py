"""QLEN, QSTAT, QPEEK, SHOW and PAUSE of ordered queues: questions to the leader, and the pause of the whole queue."""

from __future__ import annotations

from typing import Final

from disqued.core.clients.session import Session
from disqued.core.queues.queue import PAUSED_IN, PAUSED_OUT
from disqued.core.runtime.state import NodeState
from disqued.errors import CommandSyntaxError
from disqued.introspection.qlen import require_exact
from disqued.ordered.catalog import OrderedQueue
from disqued.ordered.jobids import group_of, index_of
from disqued.ordered.reading import PAUSES, pack_question
from disqued.ordered.replica import Replica
from disqued.ordered.requests import COMMAND, EXACT, READ
from disqued.ordered.room import ordered_of
from disqued.ordered.waiting import ClientRequest, Waiting
from disqued.orderedqueue.commands import encode_pause
from disqued.resp.integers import require_integer

TIMEOUT_MS: Final = 10_000
_ADDS: Final = {b"IN": PAUSED_IN, b"OUT": PAUSED_OUT, b"ALL": PAUSED_IN | PAUSED_OUT}


def _ask(state: NodeState, session: Session, queue: OrderedQueue, words: list[bytes], kind: int = READ) -> None:
    """Have the leader answer."""
    room = ordered_of(state)
    waiting = Waiting(state, session)
    waiting.begin()
    deadline_ms = state.now_ms + TIMEOUT_MS
    request = ClientRequest(room, waiting, queue.name, kind, pack_question(words), deadline_ms, repeated=True)
    room.clients.client(queue.group).submit(request)


def about_queue(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """QLEN and QSTAT. The node that leads the queue replies at once, unless an earlier reply to the client is missing.

    So these commands can be part of a query of another member, which does not wait. A leader that was cut off may reply
    until it notices, after a second; with EXACT the reply has everything that was answered before.
    """
    room = ordered_of(state)
    queue = room.catalog.by_name.get(args[1])
    if queue is None:
        return False
    if len(args) > 2:
        require_exact(args)
        _ask(state, session, queue, args, EXACT)
        return True
    replica = room.exchange.replicas.get(int(queue.group))
    if session.blocked is None and isinstance(replica, Replica) and replica.raft.is_leader:
        answer, _ = replica.applier.read(pack_question(args), {})
        session.out.append(answer)
    else:
        _ask(state, session, queue, args)
    return True


def qpeek(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """QPEEK."""
    queue = ordered_of(state).catalog.by_name.get(args[1])
    if queue is None:
        return False
    require_integer(args[2])
    _ask(state, session, queue, args)
    return True


def show(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """SHOW."""
    queue = ordered_of(state).catalog.by_word.get(group_of(args[1]))
    if queue is None or index_of(args[1]) == 0:
        return False
    _ask(state, session, queue, args)
    return True


class _PauseRequest(ClientRequest):
    """Pauses a queue."""

    def __init__(self, state: NodeState, session: Session, queue: OrderedQueue, flags: int) -> None:
        waiting = Waiting(state, session)
        waiting.begin()
        room = ordered_of(state)
        deadline_ms = state.now_ms + TIMEOUT_MS
        super().__init__(room, waiting, queue.name, COMMAND, encode_pause(flags), deadline_ms, repeated=True)
        self._flags = flags

    def done(self, result: bytes) -> None:  # noqa: ARG002 - it says nothing
        """Reply with the state."""
        self.waiting.finish(b"+" + PAUSES[self._flags] + b"\r\n")


def pause(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """PAUSE: an ordered queue is paused on all nodes at once, so BCAST changes nothing."""
    room = ordered_of(state)
    queue = room.catalog.by_name.get(args[1])
    if queue is None:
        return False
    wanted: int | None = None
    for word in args[2:]:
        option = word.upper()
        if option == b"NONE":
            wanted = 0
        elif option in _ADDS:
            wanted = (wanted or 0) | _ADDS[option]
        elif option not in {b"BCAST", b"STATE"}:
            raise CommandSyntaxError
    if wanted is None:
        _ask(state, session, queue, [b"pause"])
    else:
        room.clients.client(queue.group).submit(_PauseRequest(state, session, queue, wanted))
    return True
