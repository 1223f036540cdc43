"""CONFIG REWRITE: writes the current configuration to the file that the server was started with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.config import rewrite as rewritten

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState


def rewrite(state: NodeState) -> bool:
    """Write the file; False if the server runs without one. Raises OSError."""
    host = state.host
    text = host.read_config()
    if text is None:
        return False
    host.write_config(rewritten(text, state.config, host.working_directory()))
    return True
