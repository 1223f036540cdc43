"""Clients that sent nothing for so long that nobody seems to be there (`timeout`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

if TYPE_CHECKING:
    from disqued.core.state import NodeState


def hang_up_idle(state: NodeState, active_before_ms: i64) -> None:
    """Hang up on clients that sent nothing since, but for those that wait for a job or watch."""
    for session in list(state.sessions.values()):
        if session.active_ms < active_before_ms and session.blocked is None and not session.monitor:
            state.ready.hang_up(session)
