"""TIME: the server's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def time(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Reply with unix seconds and the microseconds of the second, both as text."""
    seconds, microseconds = divmod(state.host.wall_us(), 1_000_000)
    session.reply_array(2)
    session.reply_bulk(b"%d" % seconds)
    session.reply_bulk(b"%d" % microseconds)


COMMAND: Final[Command] = Command(
    "time",
    1,
    ("readonly", "fast"),
    time,
    "server",
    "Replies with the server's time: seconds since 1970 and microseconds.",
    categories=("connection",),
)
