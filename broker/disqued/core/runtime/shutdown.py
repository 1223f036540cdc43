"""The end of a node that was asked to end: first everything that changed is to be on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState


def end(state: NodeState, *, rewrite: bool) -> bool:
    """Have all that changed on disk, in a file written anew if `rewrite`; False if that fails: the node goes on.

    Afterwards nothing changes any more (`state.ended`): what is on disk is what the next run finds. A node that still
    loads has changed nothing.
    """
    if state.ended:
        return True
    if not state.loading:
        error = state.events.last_records(rewrite=rewrite)
        if error:
            state.host.log("warning", f"The node goes on, because what it knows could not be written: {error}")
            return False
    state.ended = True
    return True
