"""Unexpected exceptions: the node continues to serve, and the log has what is needed to fix the bug."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState


def report_bug(state: NodeState, what: str, error: Exception) -> None:
    """Log what failed, with the traceback."""
    text = "".join(traceback.format_exception(error))
    state.host.log("warning", f"BUG: {what}, please report it:\n{text}")
