"""BGREWRITEAOF: rewrite the append-only file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.runtime.audit import always
from disqued.errors import ReplyError
from disqued.persistence.room import aof_of

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def bgrewriteaof(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Start a rewrite unless one is running. While the log is off, it leaves a file with the current state."""
    rewrite = aof_of(state).rewrite
    if rewrite.running:
        raise ReplyError("ERR Background append only file rewriting already in progress")
    rewrite.start()
    session.reply_status(b"Background append only file rewriting started")


COMMAND: Final[Command] = Command(
    "bgrewriteaof",
    1,
    ("readonly", "admin"),
    bgrewriteaof,
    "server",
    "Rewrites the append-only file in the background.",
    complexity="O(jobs)",
    audited=always,
    categories=("admin",),
)
