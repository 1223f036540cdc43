"""Holds back what must not be said before it is logged.

The node gives the changes of a turn to the append only file as one group, number `ready.logged`; up to number
`ready.safe` they reached it as `appendfsync` promises. Mostly they have by the time that the output of the turn is to
leave, and nothing is held. Otherwise the replies of the turn and its confirmations to other nodes wait, and so does
what a client whose replies wait is told later. Everybody else goes on: reads, pings and frames that promise nothing.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from mypy_extensions import i64

from disqued.core.outbox import put
from disqued.core.ready import Confirmation
from disqued.core.session import Session

if TYPE_CHECKING:
    from disqued.core.state import NodeState


class Held:
    """What one turn had to say, and which group has to be safe before."""

    def __init__(self, group: i64) -> None:
        self.group: i64 = group
        self.sessions: list[Session] = []
        self.replies: list[list[bytes]] = []
        """Of each of the sessions."""
        self.confirmations: list[Confirmation] = []


class Gate:
    """The output of one node that waits."""

    def __init__(self) -> None:
        self._held: deque[Held] = deque()
        self._seen: i64 = 0
        """The last group of which the output was sorted."""

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._held

    def sort(self, state: NodeState) -> None:
        """To be called once per turn after `Node.log`: hold back what has to wait, let go what waited long enough."""
        ready = state.ready
        changed = ready.logged > self._seen
        self._seen = ready.logged
        if ready.safe < ready.logged or self._held:
            self._hold(state, changed)
        elif ready.confirmations:
            _confirm(state, ready.confirmations)
            ready.confirmations = []
        while self._held and self._held[0].group <= ready.safe:
            self._release(state, self._held.popleft())

    def _hold(self, state: NodeState, changed: bool) -> None:
        """Take the output of this turn out of the batch, all of it if something changed."""
        ready = state.ready
        held = Held(ready.logged)
        held.confirmations = ready.confirmations
        ready.confirmations = []
        free: list[Session] = []
        for session in ready.sessions:
            if changed or session.held > 0:
                session.held += 1
                session.flushing = False
                held.sessions.append(session)
                held.replies.append(session.out)
                session.out = []
            else:
                free.append(session)
        if held.sessions or held.confirmations:
            ready.sessions = free
            self._held.append(held)

    def _release(self, state: NodeState, held: Held) -> None:
        for session, replies in zip(held.sessions, held.replies, strict=True):
            session.held -= 1
            session.out.extend(replies)
            state.ready.flush(session)
        _confirm(state, held.confirmations)


def _confirm(state: NodeState, confirmations: list[Confirmation]) -> None:
    for confirmation in confirmations:
        if not confirmation.link.closed:
            put(state, confirmation.link, confirmation.frame)
