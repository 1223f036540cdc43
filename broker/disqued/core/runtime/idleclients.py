"""Clients that sent nothing for so long that nobody seems to be there (`timeout`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

VISIT_MS: Final = 1000


class IdleClients:
    """Looks at the clients of a node once per second."""

    def __init__(self) -> None:
        self._next_ms: i64 = 0

    def visit(self, state: NodeState) -> None:
        """Called more often than that."""
        if state.now_ms >= self._next_ms:
            self._next_ms = state.now_ms + VISIT_MS
            timeout_ms = state.config.timeout * 1000
            if timeout_ms > 0:
                _hang_up_idle(state, state.now_ms - timeout_ms)


def _hang_up_idle(state: NodeState, active_before_ms: i64) -> None:
    """Hang up on clients that sent nothing since, but for those that wait for a job or watch."""
    for session in list(state.sessions.values()):
        if session.active_ms < active_before_ms and session.blocked is None and not session.monitor:
            state.ready.hang_up(session)
