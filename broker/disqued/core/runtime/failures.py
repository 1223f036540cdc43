"""Unexpected exceptions: the node continues to serve, and the log has what is needed to fix the bug."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState


def report_bug(state: NodeState, what: str, error: Exception) -> None:
    """Log what failed, with the traceback: one line of the log for each of its lines."""
    state.host.log("warning", f"BUG: {what}, please report it:")
    for part in traceback.format_exception(error):
        for line in part.splitlines():
            state.host.log("warning", f"  {line}")
