"""The durability barrier: holds back what must not be said before it is logged.

The node gives the changes of a turn to the append-only file as one group, number `Ready.logged`; up to number
`Ready.safe` they reached it as `appendfsync` promises. Mostly they have by the time that the output of the turn leaves,
and nothing is held. Otherwise three kinds of output wait:

- replies to clients that had a part in a change that is not safe (`Session.tells_of`), or read the result of one;
- everything that such a client is told later, so that replies keep their order;
- what tells other nodes that this one has a copy (GOTJOB) or ended a job (SETACK, GOTACK, DELJOB), and at-most-once
  jobs that go to them, for any change so far.

All other output passes in the same turn: reads, pings and frames that promise nothing. Output for a client that has
disconnected is dropped at once.
"""

from __future__ import annotations

from collections import deque

from mypy_extensions import i64

from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Link


class Confirmation:
    """A frame for a link that may only leave when the changes before it are logged."""

    def __init__(self, link: Link, frame: bytes) -> None:
        self.link = link
        self.frame = frame


class Held:
    """The output that waits for one group; sessions keep their replies themselves."""

    def __init__(self, group: i64) -> None:
        self.group: i64 = group
        self.sessions: list[Session] = []
        self.confirmations: list[Confirmation] = []


class Barrier:
    """The output of one node that waits."""

    def __init__(self) -> None:
        self._held: deque[Held] = deque()
        """By their groups, which grow."""

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._held

    def hold(self, session: Session, group: i64) -> None:
        """Hold back the output of a session until a group is safe."""
        if session.hold(group):
            self._waiting_for(group).sessions.append(session)

    def hold_confirmations(self, confirmations: list[Confirmation], group: i64) -> None:
        """Hold back frames until a group is safe."""
        self._waiting_for(group).confirmations.extend(confirmations)

    def _waiting_for(self, group: i64) -> Held:
        """What waits for a group that is the last one so far."""
        if self._held and self._held[-1].group == group:
            return self._held[-1]
        held = Held(group)
        self._held.append(held)
        return held

    def release(self, safe: i64) -> Held | None:
        """Let go of the oldest group if it is safe now; None when there is no such group."""
        if self._held and self._held[0].group <= safe:
            return self._held.popleft()
        return None
