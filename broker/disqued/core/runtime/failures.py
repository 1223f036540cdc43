"""Failures that nobody meant: the node serves on, and the log has what is needed to mend them."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState


def report_bug(state: NodeState, what: str, error: Exception) -> None:
    """Log what failed, and where."""
    text = "".join(traceback.format_exception(error))
    state.host.log("warning", f"BUG: {what}, please report it:\n{text}")
