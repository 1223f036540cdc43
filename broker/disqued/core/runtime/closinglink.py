"""Closes a link to a node that is refused and told why, after it had time to read that."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from disqued.core.cluster.peer import Link
from disqued.core.runtime.state import NodeState
from disqued.core.timers.alarm import Alarm

LAST_WORDS_MS: Final = 1000
"""How long the other node may take to read why."""


@mypyc_attr(acyclic=True)
class ClosingLink(Alarm):
    """A link that is closed soon, even if the other end does not do so."""

    def __init__(self, link: Link) -> None:
        super().__init__()
        self._link = link

    def ring(self, state: NodeState) -> None:
        """Close the link."""
        state.ready.hang_up_link(self._link)


def close_soon(state: NodeState, link: Link) -> None:
    """Close a link when its last frame had time to arrive."""
    state.lifecycle.timers.arm(ClosingLink(link), state.now_ms + LAST_WORDS_MS)
