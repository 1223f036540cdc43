"""SHUTDOWN: end the server cleanly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.command import Command
from disqued.errors import CommandSyntaxError

if TYPE_CHECKING:
    from disqued.core.session import Session
    from disqued.core.state import NodeState


def shutdown(state: NodeState, session: Session, args: list[bytes]) -> None:
    """End without a reply: the connection closes.

    REWRITE-AOF asks for a compact append only file to be left behind; a node that keeps none has nothing to do for it.
    """
    if len(args) > 2 or (len(args) == 2 and args[1].upper() != b"REWRITE-AOF"):
        raise CommandSyntaxError
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
