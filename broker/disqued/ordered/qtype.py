"""QTYPE: which type of queue a name is."""

from __future__ import annotations

from typing import Final

from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.commands.scope import first_word
from disqued.core.runtime.state import NodeState
from disqued.ordered.room import ordered_of


def qtype(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with `ordered`, or with `jobs` for all other names: any name can be that of a queue of jobs."""
    session.reply_status(b"ordered" if args[1] in ordered_of(state).catalog.by_name else b"jobs")


COMMAND: Final[Command] = Command(
    "qtype",
    2,
    ("readonly", "fast"),
    qtype,
    "queues",
    "Shows the type of a queue.",
    "queue",
    queues=first_word,
    categories=("inspect",),
)
