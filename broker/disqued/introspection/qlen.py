"""QLEN: the number of jobs that wait in a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.commands.scope import first_word

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def qlen(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the length, 0 for a queue that does not exist."""
    queue = state.lifecycle.queues.get(args[1])
    session.reply_integer(queue.length if queue is not None else 0)


COMMAND: Final[Command] = Command(
    "qlen",
    2,
    ("readonly", "fast"),
    qlen,
    "queues",
    "Counts the jobs that wait in a queue.",
    "queue",
    queues=first_word,
    categories=("inspect",),
)
