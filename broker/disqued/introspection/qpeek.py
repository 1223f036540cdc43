"""QPEEK: shows waiting jobs without delivering them, also in a paused queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.commands.longreply import LongReply
from disqued.core.commands.scope import first_word
from disqued.core.runtime.slices import run_long
from disqued.resp.integers import require_integer
from disqued.resp.writer import CRLF, bulk_header

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState

JOBS_PER_STEP: Final = 200


class Peek(LongReply):
    """A QPEEK in progress."""

    def __init__(self, name: bytes, count: int) -> None:
        super().__init__()
        self._name = name
        self._missing = abs(count)
        self._sign = 1 if count >= 0 else -1
        self._last: Job | None = None
        """The last job that was found."""

    def look(self, state: NodeState, _session: Session) -> bool:
        """Look at the jobs behind the last one."""
        queue = state.lifecycle.queues.get(self._name)
        wanted = min(self._missing, JOBS_PER_STEP)
        if queue is None or wanted == 0:
            return False
        jobs = queue.order.peek(wanted * self._sign, self._last)
        parts: list[bytes] = []
        for job in jobs:
            parts += (b"".join((queue.reply_prefix, job.id, CRLF, bulk_header(len(job.body)))), job.body, CRLF)
        self.add(len(jobs), parts)
        self._missing -= len(jobs)
        if jobs:
            self._last = jobs[-1]
        return len(jobs) == wanted


def qpeek(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the next `count` jobs as GETJOB does; for a negative count with the last ones, the last one first."""
    count = require_integer(args[2])
    queue = state.lifecycle.queues.get(args[1])
    length = 0 if queue is None else int(queue.length)
    run_long(state, session, Peek(args[1], max(min(count, length), -length)))


COMMAND: Final[Command] = Command(
    "qpeek",
    3,
    ("readonly",),
    qpeek,
    "queues",
    "Shows waiting jobs without delivering them: the next ones, or with a negative count the last ones.",
    "queue count",
    "O(jobs returned)",
    queues=first_word,
    categories=("inspect",),
)
