"""JSCAN: iterates over the jobs of this node.

The cursor is the number of a cell of the job table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.commands.longreply import LongReply
from disqued.core.jobs.job import STATE_NAMES
from disqued.core.jobs.phases import PHASES, phase_of
from disqued.core.jobs.table import CELLS
from disqued.core.runtime.slices import run_long
from disqued.errors import ReplyError
from disqued.introspection.description import describe_job
from disqued.introspection.scan import Scan

if TYPE_CHECKING:
    from disqued.core.access.user import User
    from disqued.core.clients.session import Session
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState

_REPLIES: Final = (b"id", b"all")
LOOKS_PER_STEP: Final = 500
DESCRIPTIONS_PER_STEP: Final = 20
"""About how many jobs are looked at in one step."""


class JobScan(Scan):
    """The options of one JSCAN."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: bytes | None = None
        self.states: set[int] = set()
        self.phases: set[int] = set()
        """Phases whose names are not those of states: parts of the states active and queued."""
        self.describe = False
        self.user: User | None = None
        """The user, who sees only jobs of the queues that its rules allow."""

    def take(self, option: bytes, value: bytes) -> bool:
        """Set an option; several states can be given."""
        if option == b"QUEUE":
            self.queue = value
        elif option == b"STATE":
            name = value.lower()
            if name in STATE_NAMES:
                self.states.add(STATE_NAMES.index(name))
            elif name in PHASES:
                self.phases.add(PHASES.index(name))
            else:
                raise ReplyError("ERR Invalid job state name")
        elif option == b"REPLY":
            if value.lower() not in _REPLIES:
                raise ReplyError("ERR Invalid REPLY type, try ID or ALL")
            self.describe = value.lower() == b"all"
        else:
            return super().take(option, value)
        return True

    def matches(self, job: Job) -> bool:
        """Whether a job passes the filters. Acknowledgements of unknown jobs never do."""
        if job.is_dummy or (self.user is not None and not self.user.rules.allows_queue(job.queue)):
            return False
        if self.queue is not None and job.queue != self.queue:
            return False
        if not self.states and not self.phases:
            return True
        return job.state in self.states or (bool(self.phases) and phase_of(job) in self.phases)


class JobScanReply(LongReply):
    """A JSCAN in progress. It ends between two cells, so the reply may have a few elements more than COUNT."""

    def __init__(self, state: NodeState, scan: JobScan) -> None:
        super().__init__()
        self._scan = scan
        self._cell = state.lifecycle.table.occupied_cell(scan.cursor or 0)
        self._looked_at = 0

    def begin(self, session: Session) -> None:
        """Append the next cursor and the number of elements."""
        session.reply_array(2)
        session.reply_bulk(b"%d" % (self._cell if self._cell < CELLS else 0))
        super().begin(session)

    def look(self, state: NodeState, session: Session) -> bool:
        """Look at the jobs of some cells."""
        table = state.lifecycle.table
        if self._cell >= CELLS:
            return False
        looks = DESCRIPTIONS_PER_STEP if self._scan.describe else LOOKS_PER_STEP
        cells = max(1, looks * CELLS // (int(table.count) + 1))
        found: list[Job] = []
        ended = False
        for jobs in table.scan_cells(self._cell, cells):
            self._cell += 1
            self._looked_at += len(jobs)
            found += [job for job in jobs if self._scan.matches(job)]
            if self._cell < CELLS and self._scan.enough(self.count + len(found), self._looked_at):
                ended = True
                break
        parts = (
            self._described(state, session, found) if self._scan.describe else [b"+%b\r\n" % job.id for job in found]
        )
        self.add(len(found), parts)
        if ended:
            return False
        self._cell = table.occupied_cell(self._cell)
        return True

    def _described(self, state: NodeState, session: Session, jobs: list[Job]) -> list[bytes]:
        """The descriptions of jobs, encoded."""
        out = session.out
        kept = len(out)
        described: list[bytes] = []
        for job in jobs:
            describe_job(state, session, job)
            *fields, body, end = out[kept:]
            described += (b"".join(fields), body, end)
            del out[kept:]
        return described


def jscan(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the next cursor and the jobs found: their IDs, or with REPLY ALL their descriptions."""
    scan = JobScan()
    scan.read(args[1:])
    scan.user = session.user
    run_long(state, session, JobScanReply(state, scan))


COMMAND: Final[Command] = Command(
    "jscan",
    -1,
    ("readonly",),
    jscan,
    "jobs",
    "Iterates over the jobs that pass the filters.",
    "[cursor] [COUNT n] [BUSYLOOP] [QUEUE queue] "
    "[STATE wait-repl|active|queued|acked|delayed|leased|dead|held] ... [REPLY all|id]",
    "O(jobs looked at)",
    categories=("inspect",),
)
