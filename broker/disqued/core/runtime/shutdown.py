"""Shutdown: the node writes all changes to disk before it ends.

The file of a controlled shutdown is long, so it is written in slices, between which the node answers. Nothing may
change meanwhile (`state.ending`), because the file has the exact state: commands that change something are refused,
messages about jobs are dropped as if they were lost, and no timer fires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.errors import NodeEnding, ReplyError

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState

FAILED: Final = "ERR Errors trying to SHUTDOWN. Check logs."


def end(state: NodeState) -> bool:
    """Write all changes to disk; False if that fails and the node continues.

    Afterwards nothing changes any more (`state.ended`), so the next run finds exactly what is on disk. A node that is
    still loading has no changes. It waits for the disk and serves nobody meanwhile: no client may get a reply to a
    change after the last records, and clients that are served until then would only learn a little later that the node
    ends.
    """
    if state.ended:
        return True
    if state.ending:
        return False
    if not state.loading:
        error = state.events.last_records()
        if error:
            _report(state, error)
            return False
    state.ended = True
    return True


def end_controlled(state: NodeState, session: Session) -> None:
    """Begin to write the exact state to a new file, and to end. The client waits until the node ends or continues.

    Raises:
        ReplyError: the node is ending already, or the file could not be written.
    """
    if state.ending:
        raise NodeEnding
    if state.loading or state.ended:
        state.ended = True
        session.closing = True
        state.host.shutdown()
        return
    state.ending = True
    state.events.last_rewrite(session)


def conclude_end(state: NodeState, error: str) -> None:
    """The file of a controlled shutdown is written, or could not be: end, or continue.

    Raises:
        ReplyError: there was an error, and the node continues.
    """
    state.ending = False
    if error:
        _report(state, error)
        raise ReplyError(FAILED)
    state.ended = True
    state.host.shutdown()


def _report(state: NodeState, error: str) -> None:
    state.host.log("warning", f"Not shutting down, changes could not be written: {error}")
