"""Why jobs stay on a leaving node: the texts of `waits-for` in CLUSTER LEAVING STATUS."""

from __future__ import annotations

from typing import Final

from disqued.core.runtime.state import NodeState
from disqued.leaving.targets import Targets

_NOBODY_STAYS: Final = "no other node that stays answers"
_NO_LINK: Final = "no other node that stays is connected"
_UNWILLING: Final = "no other node takes jobs: they are short of memory or too busy to answer"
_PAUSED: Final = "the other nodes refuse the jobs of some queues: paused in input, or short of memory"
_AT_MOST_ONCE: Final = "delayed at-most-once jobs wait until they are due: no other node can wait for them"


def reason(state: NodeState, targets: Targets, *, queues_refused: bool, at_most_once_left: bool) -> str:
    """The reason why jobs stay, as of the last pass over all jobs; empty if there is none."""
    if not state.view.reachable:
        return _NOBODY_STAYS
    if targets.linked == 0:
        return _NO_LINK
    if targets.willing == 0:
        return _UNWILLING
    if queues_refused:
        return _PAUSED
    return _AT_MOST_ONCE if at_most_once_left else ""
