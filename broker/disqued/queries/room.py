"""The queries of one node that other members have not answered yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from disqued.bus import kinds
from disqued.bus.bigendian import read_u32, u32
from disqued.core.runtime.outbox import send
from disqued.core.runtime.room import Room
from disqued.resp.writer import request

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

NAME: Final = "queries"
FEATURE_QUERY: Final = 16
"""Understands QUERY and RESULT."""
LOGGED_IN: Final = b"password"
NOT_LOGGED_IN: Final = b"none"
"""The second word of a query, whether its user has proven to be that user."""
_NUMBERS: Final = 1 << 32

Answered: TypeAlias = Callable[[bytes], None]


class Asker(NamedTuple):
    """The user of a console, for whom a node asks others."""

    user: bytes
    logged_in: bool
    """False if the node that asks requires no password of the user."""


class _Pending(NamedTuple):
    """A query that was sent."""

    member: bytes
    answered: Answered


class QueriesRoom(Room):
    """Sends queries and passes on their results."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self._pending: dict[int, _Pending] = {}
        """By number."""
        self._last = 0

    def ask(self, peer: Peer, asker: Asker, requests: Sequence[Sequence[bytes]], answered: Answered) -> int:
        """Ask a member to run commands. `answered` is called with their replies, unless `forget` is called before.

        Returns the number of the query; 0 if it cannot be sent now, because there is no free connection to a node that
        understands it.
        """
        link = peer.link
        if not peer.features & FEATURE_QUERY or link is None or link.congested or not link.answered:
            return 0
        number = self._last % (_NUMBERS - 1) + 1
        words = [[asker.user, LOGGED_IN if asker.logged_in else NOT_LOGGED_IN], *requests]
        if not send(self.state, peer, self.state.bus.other(kinds.QUERY, u32(number) + b"".join(map(request, words)))):
            return 0
        self._last = number
        self._pending[number] = _Pending(peer.id, answered)
        return number

    def forget(self, number: int) -> None:
        """Ignore the result of a query."""
        self._pending.pop(number, None)

    def take(self, sender: Peer, number: int, replies: bytes) -> None:
        """Pass on the result of a query, if it was sent to this member."""
        pending = self._pending.get(number)
        if pending is not None and pending.member == sender.id:
            del self._pending[number]
            pending.answered(replies)


def queries_of(state: NodeState) -> QueriesRoom:
    """The queries room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, QueriesRoom)
    return room


def handle_result(state: NodeState, sender: Peer, frame: Frame) -> None:
    """A member answered a query."""
    payload = frame.payload
    if len(payload) >= 4:
        queries_of(state).take(sender, read_u32(payload, 0), payload[4:])
