"""PING: checks whether the server responds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.errors import WrongArity

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def ping(_state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply PONG, or the text given."""
    if len(args) > 2:
        raise WrongArity("ping")
    if len(args) == 2:
        session.reply_bulk(args[1])
    else:
        session.reply_status(b"PONG")


COMMAND: Final[Command] = Command(
    "ping",
    -1,
    ("readonly", "fast"),
    ping,
    "connection",
    "Replies PONG, or the text given.",
    "[text]",
    needs_log=True,
    categories=("connection",),
)
