"""SHUTDOWN: end the server cleanly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.runtime.shutdown import end
from disqued.errors import CommandSyntaxError, ReplyError

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def shutdown(state: NodeState, session: Session, args: list[bytes]) -> None:
    """End without a reply: the connection closes. The node stays if what it has to write can not be written.

    With REWRITE-AOF it leaves an append only file behind from which the next run has everything as it is now, whether
    it keeps such a file or not.
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
    "Ends the server cleanly.",
    "[REWRITE-AOF]",
)
