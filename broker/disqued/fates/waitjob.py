"""WAITJOB: wait until jobs have ended, wherever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.jobs.jobid import is_job_id
from disqued.core.runtime.manyjobs import queues_of_fates
from disqued.errors import BadJobId, CommandSyntaxError
from disqued.fates.waiting import MOST_JOBS, EndsWait, require_few_jobs
from disqued.resp.integers import require_timeout_ms

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState

_OPTION_WORDS: Final = 4
"""ANY, WITHRESULT, TIMEOUT and its value."""


def waitjob(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the jobs that have ended and their outcomes, once all have, or any; a null array if that takes long.

    Raises ReplyError for more jobs than may be watched at once.
    """
    end = 1
    while end < len(args) and is_job_id(args[end]):
        end += 1
    if end == 1:
        raise BadJobId
    require_few_jobs("WAITJOB", end - 1)
    is_any = with_result = False
    timeout_ms: int | None = None
    at = end
    while at < len(args):
        word = args[at].upper()
        if word == b"TIMEOUT" and at + 1 < len(args):
            timeout_ms = require_timeout_ms(args[at + 1])
            at += 1
        elif word == b"ANY":
            is_any = True
        elif word == b"WITHRESULT":
            with_result = True
        else:
            raise CommandSyntaxError
        at += 1
    if timeout_ms is None:
        raise CommandSyntaxError
    EndsWait(session, state, args[1:end], timeout_ms, is_any=is_any, with_result=with_result).begin()


COMMAND: Final[Command] = Command(
    "waitjob",
    -4,
    ("readonly",),
    waitjob,
    "jobs",
    "Waits until jobs have ended, and replies how.",
    "job-id [job-id ...] [ANY] [WITHRESULT] TIMEOUT ms",
    "O(jobs * nodes)",
    most_words=1 + MOST_JOBS + _OPTION_WORDS,
    queues=queues_of_fates,
    categories=("producer",),
)
