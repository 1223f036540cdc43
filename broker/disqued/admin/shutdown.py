"""SHUTDOWN: stops the server cleanly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.runtime.audit import always
from disqued.core.runtime.shutdown import FAILED, end, end_controlled
from disqued.errors import CommandSyntaxError, NodeEnding, ReplyError

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def shutdown(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Stop without a reply: the connection closes. The node continues if it cannot write its changes.

    With REWRITE-AOF the node writes an append-only file with its complete state for the next run, even if `appendonly`
    is off. Meanwhile it refuses what would change its state, and answers everything else.
    """
    if len(args) > 2 or (len(args) == 2 and args[1].upper() != b"REWRITE-AOF"):
        raise CommandSyntaxError
    if len(args) == 2:
        end_controlled(state, session)
        return
    if state.ending:
        raise NodeEnding
    if not end(state):
        raise ReplyError(FAILED)
    session.closing = True
    state.host.shutdown()


COMMAND: Final[Command] = Command(
    "shutdown",
    -1,
    ("readonly", "admin", "loading"),
    shutdown,
    "server",
    "Stops the server cleanly.",
    "[REWRITE-AOF]",
    audited=always,
    categories=("admin", "dangerous"),
)
