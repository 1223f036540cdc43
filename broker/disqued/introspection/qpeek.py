"""QPEEK: shows waiting jobs without delivering them, also in a paused queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.resp import writer
from disqued.resp.integers import require_integer

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def qpeek(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the oldest `count` jobs as GETJOB does; for a negative count with the newest, newest first."""
    count = require_integer(args[2])
    queue = state.lifecycle.queues.get(args[1])
    if queue is None:
        session.reply_array(0)
        return
    jobs = queue.order.peek(max(min(count, queue.length), -queue.length))
    session.reply_array(len(jobs))
    for job in jobs:
        session.out.append(queue.reply_prefix + job.id + writer.CRLF)
        session.reply_bulk(job.body)


COMMAND: Final[Command] = Command(
    "qpeek",
    3,
    ("readonly",),
    qpeek,
    "queues",
    "Shows waiting jobs without delivering them: the oldest, or with a negative count the newest.",
    "queue count",
    "O(jobs returned)",
)
