"""MONITOR: streams every command to the client before it runs (`disqued.core.runtime.monitoring`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.runtime.audit import always

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def monitor(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Reply OK, and stream to this connection from now on. A second MONITOR has no effect."""
    if not session.monitor:
        session.monitor = True
        state.monitoring.sessions.append(session)
    session.reply_ok()


COMMAND: Final[Command] = Command(
    "monitor",
    1,
    ("readonly", "admin"),
    monitor,
    "server",
    "Streams every command that the server runs.",
    audited=always,
    categories=("admin", "dangerous"),
)
