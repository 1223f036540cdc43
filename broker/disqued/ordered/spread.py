"""A reply that waits until the other nodes know a change of the catalog.

Without it, a client could make a queue at one node and add the first job at another one, which does not know the queue
yet and takes it for a queue of jobs. A node whose catalog changes says so at once (BEAT). Nodes that are silent, or
that need more than a second, are not waited for.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.ordered.room import OrderedRoom
from disqued.ordered.waiting import Waiting
from disqued.resp.writer import OK

SPREAD_MS: Final = 1000


class _Spread:
    """Replies OK when the members know the catalog as this node knows it now."""

    def __init__(self, room: OrderedRoom, waiting: Waiting) -> None:
        self._room = room
        self._waiting = waiting
        self._version: i64 = room.catalog.version
        self._until_ms: i64 = room.state.now_ms + SPREAD_MS

    def look(self) -> bool:
        """Reply if it is time; False if it is too early."""
        if self._is_known() or self._room.state.now_ms >= self._until_ms:
            self._waiting.finish(OK)
            return True
        return self._waiting.session.closed

    def _is_known(self) -> bool:
        room = self._room
        for peer in room.state.view.reachable:
            if peer.features & kinds.FEATURE_ORDERED and not room.exchange.is_silent(peer.id):
                beat = room.beats.get(peer.id)
                if beat is None or beat.version < self._version:
                    return False
        return True


def reply_when_known(room: OrderedRoom, waiting: Waiting) -> None:
    """Reply OK when the members know the newest catalog of this node."""
    look = _Spread(room, waiting).look
    if not look():
        room.waits.append(look)
