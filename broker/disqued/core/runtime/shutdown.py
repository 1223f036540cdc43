"""Shutdown: the node writes all changes to disk before it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState


def end(state: NodeState, *, rewrite: bool) -> bool:
    """Write all changes to disk, to a rewritten file if `rewrite`; False if that fails and the node continues.

    Afterwards nothing changes any more (`state.ended`), so the next run finds exactly what is on disk. A node that is
    still loading has no changes.
    """
    if state.ended:
        return True
    if not state.loading:
        error = state.events.last_records(rewrite=rewrite)
        if error:
            state.host.log("warning", f"Not shutting down, changes could not be written: {error}")
            return False
    state.ended = True
    return True
