"""SHUTDOWN: stops the server cleanly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.runtime.shutdown import end
from disqued.errors import CommandSyntaxError, ReplyError

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def shutdown(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Stop without a reply: the connection closes. The node continues if it cannot write its changes.

    With REWRITE-AOF the node writes an append-only file with its complete state for the next run, even if `appendonly`
    is off.
    """
    if len(args) > 2 or (len(args) == 2 and args[1].upper() != b"REWRITE-AOF"):
        raise CommandSyntaxError
    if not end(state, rewrite=len(args) == 2):
        raise ReplyError("ERR Errors trying to SHUTDOWN. Check logs.")
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
)
