"""QLEN: the number of jobs that wait in a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.commands.scope import first_word
from disqued.errors import CommandSyntaxError, ReplyError

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def require_exact(args: list[bytes]) -> None:
    """Refuse other options than EXACT. Raises CommandSyntaxError."""
    if len(args) != 3 or args[2].upper() != b"EXACT":
        raise CommandSyntaxError


def qlen(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the length, 0 for a queue that does not exist."""
    if len(args) > 2:
        require_exact(args)
        raise ReplyError("ERR EXACT is for ordered queues; the jobs of this queue are counted on each node alone")
    queue = state.lifecycle.queues.get(args[1])
    session.reply_integer(queue.length if queue is not None else 0)


COMMAND: Final[Command] = Command(
    "qlen",
    -2,
    ("readonly", "fast"),
    qlen,
    "queues",
    "Counts the jobs that wait in a queue. EXACT, for ordered queues, counts all that was answered before.",
    "queue [EXACT]",
    queues=first_word,
    most_words=3,
    categories=("inspect",),
)
