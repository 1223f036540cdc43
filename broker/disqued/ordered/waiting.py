"""Clients that wait for the outcome of a request to the leader of a group."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.clients.pipeline import Pipelined
from disqued.core.clients.session import Session
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import release, suspend_pipelined
from disqued.errors import NoQuorum, NotReplicated
from disqued.ordered.requests import DONE, NO_LEADER, REFUSED, Request
from disqued.ordered.room import OrderedRoom
from disqued.resp.writer import OK

OUTCOME_UNKNOWN: Final = "the leader of the queue was lost before it answered; the command may have taken effect"


class Waiting(Pipelined):
    """A client that waits. Its next requests that may follow start meanwhile."""

    def __init__(self, state: NodeState, session: Session, size: int = 0) -> None:
        super().__init__(session, size)
        self._state = state
        self._ended: bool = False

    def begin(self) -> None:
        """Suspend the client."""
        suspend_pipelined(self._state, self)

    def finish(self, reply: bytes) -> None:
        """Reply, unless the client is gone."""
        if not self._ended and not self.session.closed:
            self._ended = True
            release(self._state, self, reply)

    def ring(self, state: NodeState) -> None:
        """Requests have their own deadlines."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ClientRequest(Request):
    """A request for which a client waits."""

    def __init__(
        self,
        room: OrderedRoom,
        waiting: Waiting,
        queue: bytes,
        kind: i64,
        data: bytes,
        deadline_ms: i64,
        *,
        repeated: bool,
    ) -> None:
        super().__init__(kind, data, deadline_ms, repeated=repeated)
        self.room = room
        self.waiting = waiting
        self.queue = queue

    def done(self, result: bytes) -> None:
        """Reply with the result."""
        self.waiting.finish(result)

    def answered(self, status: i64, data: bytes) -> None:
        """Reply with the result, or with an error."""
        if status == DONE:
            self.done(data)
        elif status == REFUSED:
            self.waiting.finish(b"-" + data + b"\r\n")
        elif status == NO_LEADER:
            known = self.room.catalog.by_name.get(self.queue)
            replicas = self.room.hosting.founders.voters if known is None else known.replicas
            self.waiting.finish(NoQuorum(self.queue, self.room.count_heard(replicas), len(replicas)).encode())
        else:
            self.waiting.finish(NotReplicated(OUTCOME_UNKNOWN).encode())


class OkRequest(ClientRequest):
    """A request that is answered with OK, whatever the result is."""

    def __init__(
        self, room: OrderedRoom, waiting: Waiting, queue: bytes, kind: i64, data: bytes, deadline_ms: i64
    ) -> None:
        # Without its own `__init__`, an instance of a compiled class never leaves the memory if the class inherits one.
        super().__init__(room, waiting, queue, kind, data, deadline_ms, repeated=True)

    def done(self, result: bytes) -> None:  # noqa: ARG002 - it says nothing
        """Reply."""
        self.waiting.finish(OK)
