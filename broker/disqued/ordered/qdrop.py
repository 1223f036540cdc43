"""QDROP: removes an ordered queue. With jobs in it only with FORCE."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.commands.scope import first_word
from disqued.core.runtime.audit import always
from disqued.core.runtime.state import NodeState
from disqued.errors import CommandSyntaxError, ReplyError, shown
from disqued.ordered.catalog import CATALOG_GROUP, pack_drop
from disqued.ordered.qnew import TIMEOUT_MS, require_catalog
from disqued.ordered.reading import pack_question
from disqued.ordered.requests import COMMAND as CHANGE
from disqued.ordered.requests import READ
from disqued.ordered.room import OrderedRoom, ordered_of
from disqued.ordered.spread import reply_when_known
from disqued.ordered.waiting import ClientRequest, Waiting


class _Drop(ClientRequest):
    """Removes the queue from the catalog."""

    def __init__(self, room: OrderedRoom, waiting: Waiting, queue: bytes, deadline_ms: i64) -> None:
        super().__init__(room, waiting, queue, CHANGE, pack_drop(queue), deadline_ms, repeated=True)

    def done(self, result: bytes) -> None:  # noqa: ARG002 - it is the same if the queue was gone already
        """Wait until this node knows that, and the others."""
        if not self._look():
            self.room.waits.append(self._look)

    def _look(self) -> bool:
        if self.queue in self.room.catalog.by_name and self.room.state.now_ms < self.deadline_ms:
            return self.waiting.session.closed
        reply_when_known(self.room, self.waiting)
        return True


class _Look(ClientRequest):
    """Asks whether the queue has jobs."""

    def __init__(self, room: OrderedRoom, waiting: Waiting, queue: bytes, data: bytes, deadline_ms: i64) -> None:
        # Without its own `__init__`, an instance of a compiled class never leaves the memory if the class inherits one.
        super().__init__(room, waiting, queue, READ, data, deadline_ms, repeated=True)

    def done(self, result: bytes) -> None:
        """Remove it if it has none."""
        if result != b":0\r\n":
            jobs = result[1:-2].decode()
            text = f"ERR queue {shown(self.queue)} has {jobs} unfinished jobs; add FORCE to delete them with it"
            self.waiting.finish(ReplyError(text).encode())
            return
        self.room.clients.client(CATALOG_GROUP).submit(_Drop(self.room, self.waiting, self.queue, self.deadline_ms))


def qdrop(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Remove a queue, and reply OK."""
    room = ordered_of(state)
    require_catalog(room)
    force = len(args) == 3 and args[2].upper() == b"FORCE"
    if len(args) == 3 and not force:
        raise CommandSyntaxError
    queue = room.catalog.by_name.get(args[1])
    if queue is None:
        raise ReplyError(f"ERR no ordered queue has the name {shown(args[1])}")
    waiting = Waiting(state, session)
    waiting.begin()
    deadline_ms = state.now_ms + TIMEOUT_MS
    if force:
        room.clients.client(CATALOG_GROUP).submit(_Drop(room, waiting, queue.name, deadline_ms))
    else:
        look = _Look(room, waiting, queue.name, pack_question([b"unfinished"]), deadline_ms)
        room.clients.client(queue.group).submit(look)


COMMAND: Final[Command] = Command(
    "qdrop",
    -2,
    ("write",),
    qdrop,
    "queues",
    "Removes an ordered queue.",
    "queue [FORCE]",
    queues=first_word,
    audited=always,
    most_words=3,
    categories=("queueadmin",),
)
