"""Commands with a list of job IDs: a long list is checked and processed in slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from mypy_extensions import i64, mypyc_attr

from disqued.core.clients.session import Session
from disqued.core.commands.longcommand import SHOWN_WORDS, LongWork
from disqued.core.jobs.jobid import is_job_id, require_job_ids
from disqued.core.runtime.slices import run_long
from disqued.core.runtime.state import NodeState
from disqued.errors import BadJobId, ReplyError

Part: TypeAlias = Callable[[NodeState, Session, list[bytes], int, int], int]
"""Processes the IDs from one index of the words of a request to another, and returns what the command counts."""

MOST_RESTRICTED_JOBS: Final = 10_000
_SHORT_JOBS: Final = 100
"""A request with fewer IDs is processed at once."""
_STEP_JOBS: Final = 8
"""Few, because the last job in an arena of Python's allocator returns the arena to the system, which takes 0.2 ms. When
all jobs of a node are removed, the last hundred of them return hundreds of arenas."""
_CHECKED_AT_ONCE: Final = 2000


def for_each_job(state: NodeState, session: Session, args: list[bytes], part: Part) -> None:
    """Process the jobs whose IDs follow the name of the command, and reply with the sum of what `part` returns.

    Raises BadJobId before anything is done unless all words are job IDs.
    """
    if len(args) <= _CHECKED_AT_ONCE:
        require_job_ids(args, 1)
        if len(args) <= _SHORT_JOBS:
            session.reply_integer(part(state, session, args, 1, len(args)))
            return
    run_long(state, session, ManyJobs(args, part))


def queues_of_jobs(state: NodeState, args: list[bytes]) -> list[bytes]:
    """The queues of the jobs whose IDs follow the name of the command, for users who may not touch all queues.

    A job that this node does not know has none: its ID cannot be guessed, and after a node has failed, clients must be
    able to acknowledge its jobs anywhere. Words that are no job IDs are left to the command, which refuses them. Raises
    ReplyError for more jobs than can be looked up at once.
    """
    if len(args) > MOST_RESTRICTED_JOBS + 1:
        raise ReplyError(
            f"ERR a user who may not access all queues can name at most {MOST_RESTRICTED_JOBS} jobs at once"
        )
    queues: list[bytes] = []
    for job_id in filter(is_job_id, args[1:]):
        job = state.lifecycle.table.get(job_id)
        queue = state.events.queue_of(job_id) if job is None else b"" if job.is_dummy else job.queue
        if queue:
            queues.append(queue)
    return queues


def queues_of_fates(state: NodeState, args: list[bytes]) -> list[bytes]:
    """The queues of the jobs in a request that this node knows, unfinished or by their records.

    A job that it does not know has none, as for other commands about jobs: its ID cannot be guessed.
    """
    queues: list[bytes] = []
    for job_id in filter(is_job_id, args[1:]):
        job = state.lifecycle.table.get(job_id)
        record = state.records.get(job_id)
        queue = state.events.queue_of(job_id) if job is None else b""
        if job is not None and not job.is_dummy:
            queues.append(job.queue)
        elif record is not None and record.queue:
            queues.append(record.queue)
        elif queue:
            queues.append(queue)
    return queues


@mypyc_attr(acyclic=True)
class ManyJobs(LongWork):
    """A command with many job IDs."""

    def __init__(self, args: list[bytes], part: Part) -> None:
        super().__init__()
        self._args = args
        self._part = part
        self._checked: i64 = 1 if len(args) > _CHECKED_AT_ONCE else len(args)
        self._done: i64 = 1
        self._counted = 0

    def step(self, state: NodeState, session: Session) -> bool:
        """Check some more IDs; when all are checked, process some."""
        args = self._args
        count: i64 = len(args)
        if self._checked < count:
            checked_to: i64 = min(self._checked + _CHECKED_AT_ONCE, count)
            while self._checked < checked_to:
                if not is_job_id(args[self._checked]):
                    raise BadJobId
                self._checked += 1
            return True
        done_to: i64 = min(self._done + _STEP_JOBS, count)
        self._counted += self._part(state, session, args, int(self._done), int(done_to))
        while self._done < done_to:
            if self._done >= SHOWN_WORDS:
                args[self._done] = b""  # frees the ID: freeing a million at the end would take long
            self._done += 1
        if done_to < count:
            return True
        session.reply_integer(self._counted)
        return False
