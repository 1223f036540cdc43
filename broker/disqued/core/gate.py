"""Holds back what must not be said before it is logged.

The node gives the changes of a turn to the append only file as one group, number `ready.logged`; up to number
`ready.safe` they reached it as `appendfsync` promises. Mostly they have by the time that the output of the turn is to
leave, and nothing is held. Otherwise three kinds of output wait:

- replies to clients that had a part in a change that is not safe (`Session.tells_of`), or were told of one;
- all that such a client is told later, so that replies keep their order;
- confirmations to other nodes (GOTJOB, GOTACK) and at-most-once jobs that go to them, for any change so far.

Everybody else goes on, in the same turn too: reads, pings and frames that promise nothing. What a client that
is gone was to be told is forgotten at once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.outbox import put
from disqued.core.ready import Confirmation
from disqued.core.session import Session

if TYPE_CHECKING:
    from disqued.core.state import NodeState


COUNTED_BYTES: Final = 4096
"""Who has more than this held is counted among the clients that let output wait."""


class Held:
    """Who has to wait for a group; the sessions keep their replies."""

    def __init__(self, group: i64) -> None:
        self.group: i64 = group
        self.sessions: list[Session] = []
        self.confirmations: list[Confirmation] = []


class Gate:
    """The output of one node that waits."""

    def __init__(self) -> None:
        self._held: deque[Held] = deque()
        """By their groups, which grow."""

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._held

    def sort(self, state: NodeState) -> None:
        """To be called once per turn after `Node.log`: hold back what has to wait, let go what waited long enough."""
        ready = state.ready
        held = self._held
        if held or ready.safe < ready.logged:
            self._hold(state)
            while held and held[0].group <= ready.safe:
                _release(state, held.popleft())
        elif ready.confirmations:
            _confirm(state, ready.confirmations)
            ready.confirmations = []

    def _hold(self, state: NodeState) -> None:
        """Take the output that has to wait out of the batch."""
        ready = state.ready
        safe = ready.safe
        group = ready.logged
        last = self._held[-1] if self._held and self._held[-1].group == group else Held(group)
        free: list[Session] = []
        for session in ready.sessions:
            if session.tells_of <= safe and session.held is None:
                free.append(session)
                continue
            if session.hold(group):
                last.sessions.append(session)
            if session.held_bytes > COUNTED_BYTES:
                state.slow[int(session.number)] = session
                if state.output_limited:
                    session.watch_output()
        if ready.confirmations:
            last.confirmations.extend(ready.confirmations)
            ready.confirmations = []
        ready.sessions = free
        if (last.sessions or last.confirmations) and (not self._held or self._held[-1] is not last):
            self._held.append(last)


def _release(state: NodeState, held: Held) -> None:
    for session in held.sessions:
        if session.held is not None:  # otherwise the client is gone
            session.let_go()
            state.ready.flush(session)
    _confirm(state, held.confirmations)


def _confirm(state: NodeState, confirmations: list[Confirmation]) -> None:
    for confirmation in confirmations:
        if not confirmation.link.closed:
            put(state, confirmation.link, confirmation.frame)
