"""Writes the cluster configuration file: at once if a client waits for it, otherwise in the next round of the cron."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.errors import ReplyError
from disqued.membership.kept import membership_of
from disqued.membership.nodesconf import encode

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.membership.kept import Membership

_RETRY_ROUNDS: Final = 10


def save(state: NodeState, *, sync: bool) -> None:
    """Write the file, and sync it if `sync`. Raises OSError."""
    state.host.save_nodes(encode(state.view), sync)
    membership_of(state).unsaved = False


def save_or_refuse(state: NodeState, *, sync: bool) -> None:
    """Write the file for a client's command. Raises ReplyError."""
    try:
        save(state, sync=sync)
    except OSError as error:
        raise ReplyError(f"ERR error saving the cluster node config: {error.strerror}") from error


def save_changes(own: Membership) -> None:
    """Write the file if something changed. A failure is logged and retried; the node continues with what it knows."""
    state = own.state
    if not own.unsaved or own.rounds < own.save_round:
        return
    try:
        save(state, sync=False)
    except OSError as error:
        if not own.save_failed:
            state.host.log("warning", f"Can't write the cluster config file: {error.strerror}. Trying again.")
        own.save_failed = True
        own.save_round = own.rounds + _RETRY_ROUNDS
        return
    own.save_failed = False
