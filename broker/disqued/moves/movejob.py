"""MOVEJOB: move jobs to another queue.

The client gets the number of jobs that were moved: when all moves are done, or after a while; moves that take longer
continue. Jobs that a worker of this node has leased are not moved.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.commands.longcommand import LongWork
from disqued.core.jobs.jobid import is_job_id, require_job_ids
from disqued.core.runtime.audit import always
from disqued.core.runtime.manyjobs import queues_of_jobs
from disqued.core.runtime.slices import run_long
from disqued.core.runtime.state import NodeState
from disqued.errors import CommandSyntaxError, ReplyError
from disqued.moves.request import begin_move
from disqued.moves.room import moves_of

WAIT_MS: Final = 5000
"""How long a client waits for moves."""
_STEP_JOBS: Final = 8
MOST_JOBS: Final = 10_000


@mypyc_attr(acyclic=True)
class MoveJobs(LongWork):
    """The work of one MOVEJOB."""

    def __init__(self, state: NodeState, ids: list[bytes], target: bytes, *, keep_counters: bool) -> None:
        super().__init__()
        self._state = state
        self._moving = moves_of(state).moving
        self._ids = ids
        self._target = target
        self._keep_counters = keep_counters
        self._at: i64 = 0
        self._begun: list[bytes] = []
        """The jobs whose moves may be under way."""
        self._moved = 0
        """How many others were moved."""
        self._deadline_ms: i64 = state.now_ms + WAIT_MS

    def step(self, state: NodeState, session: Session) -> bool:
        """Begin some more moves; when all are begun, reply if they are done or the time is over."""
        end = min(int(self._at) + _STEP_JOBS, len(self._ids))
        for index in range(int(self._at), end):
            job = state.lifecycle.table.get(self._ids[index])
            if job is None:
                continue
            if job.queue == self._target:
                raise ReplyError("ERR The job is in that queue already")
            if begin_move(state, self._moving, job, self._target, keep_counters=self._keep_counters):
                self._begun.append(job.id)
        self._at = end
        if end < len(self._ids):
            return True
        if self.waits():
            return True
        session.reply_integer(self._moved + len([job_id for job_id in self._begun if job_id not in self._moving]))
        return False

    def waits(self) -> bool:
        """Whether moves are under way, and the client must still wait for them."""
        if self._at < len(self._ids) or self._state.now_ms >= self._deadline_ms:
            return False
        while self._begun and self._begun[-1] not in self._moving:  # each is looked at once
            self._begun.pop()
            self._moved += 1
        return len(self._begun) > 0


def parse_movejob(args: list[bytes]) -> tuple[int, bytes, bool]:
    """The index after the last ID, the target queue, and whether counters are kept."""
    end = 1
    while end < len(args) and is_job_id(args[end]):
        end += 1
    options = args[end:]
    if end < len(args) and args[end].upper() != b"TO":
        require_job_ids(args, end)
    if end == 1 or len(options) < 2:
        raise CommandSyntaxError
    if len(options) == 2:
        return end, options[1], False
    if len(options) == 3 and options[2].upper() == b"UNCOUNTED":
        return end, options[1], True
    raise CommandSyntaxError


def movejob(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Move jobs, and reply with how many were moved."""
    end, target, keep_counters = parse_movejob(args)
    if end - 1 > MOST_JOBS:
        raise ReplyError(f"ERR MOVEJOB takes at most {MOST_JOBS} jobs, not {end - 1}; use several requests")
    run_long(state, session, MoveJobs(state, args[1:end], target, keep_counters=keep_counters))


def _queues(state: NodeState, args: list[bytes]) -> list[bytes]:
    """The queues of the jobs, and the one they are moved to."""
    names = queues_of_jobs(state, args)
    for index in range(1, len(args) - 1):
        if not is_job_id(args[index]):
            names.append(args[index + 1])
            break
    return names


COMMAND: Final[Command] = Command(
    "movejob",
    -4,
    ("write", "denyoom"),
    movejob,
    "jobs",
    "Moves jobs to another queue, and replies with their number.",
    "job-id [job-id ...] TO queue [UNCOUNTED]",
    "O(jobs) plus the messages of an ADDJOB and an ACKJOB for each",
    most_words=2 * MOST_JOBS,
    queues=_queues,
    audited=always,
    categories=("queueadmin",),
)
