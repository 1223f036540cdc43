"""When the cluster configuration file is written: at once where somebody waits for it, else with the next round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.errors import ReplyError
from disqued.membership.nodesconf import encode

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

_RETRY_ROUNDS: Final = 10


def save(state: NodeState, *, sync: bool) -> None:
    """Write the file, down to the disk if `sync`. Raises OSError."""
    state.host.save_nodes(encode(state.view), sync)
    state.view.unsaved = False


def save_or_refuse(state: NodeState, *, sync: bool) -> None:
    """Write the file for a client. Raises ReplyError."""
    try:
        save(state, sync=sync)
    except OSError as error:
        raise ReplyError(f"ERR error saving the cluster node config: {error.strerror}") from error


def save_changes(state: NodeState) -> None:
    """Write what changed; a failure is logged and tried again: the node lives on with what it knows."""
    view = state.view
    if not view.unsaved or view.rounds < view.save_round:
        return
    try:
        save(state, sync=False)
    except OSError as error:
        if not view.save_failed:
            state.host.log("warning", f"Can't write the cluster config file: {error.strerror}. Trying again.")
        view.save_failed = True
        view.save_round = view.rounds + _RETRY_ROUNDS
        return
    view.save_failed = False
