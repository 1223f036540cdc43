"""JSCAN: iterates over the jobs of this node.

The cursor is the number of a cell of the job table. A call ends between two cells, so a reply may have a few elements
more than COUNT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.jobs.job import STATE_NAMES
from disqued.core.jobs.table import CELLS
from disqued.errors import ReplyError
from disqued.introspection.description import describe_job
from disqued.introspection.scan import Scan

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState

_REPLIES: Final = (b"id", b"all")


class JobScan(Scan):
    """The options of one JSCAN."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: bytes | None = None
        self.states: set[int] = set()
        self.describe = False

    def take(self, option: bytes, value: bytes) -> bool:
        """Set an option; several states can be given."""
        if option == b"QUEUE":
            self.queue = value
        elif option == b"STATE":
            if value.lower() not in STATE_NAMES:
                raise ReplyError("ERR Invalid job state name")
            self.states.add(STATE_NAMES.index(value.lower()))
        elif option == b"REPLY":
            if value.lower() not in _REPLIES:
                raise ReplyError("ERR Invalid REPLY type, try ID or ALL")
            self.describe = value.lower() == b"all"
        else:
            return super().take(option, value)
        return True

    def matches(self, job: Job) -> bool:
        """Whether a job passes the filters. Acknowledgements of unknown jobs never do."""
        if job.is_dummy:
            return False
        return (self.queue is None or job.queue == self.queue) and (not self.states or job.state in self.states)


def jscan(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the next cursor and the jobs found: their IDs, or with REPLY ALL their descriptions."""
    scan = JobScan()
    scan.read(args[1:])
    cursor, jobs = _find(state, scan)
    session.reply_array(2)
    session.reply_bulk(b"%d" % cursor)
    session.reply_array(len(jobs))
    for job in jobs:
        if scan.describe:
            describe_job(state, session, job)
        else:
            session.reply_status(job.id)


def _find(state: NodeState, scan: JobScan) -> tuple[int, list[Job]]:
    """The next cursor, and the jobs that pass the filters between the two cursors."""
    table = state.lifecycle.table
    cell = table.occupied_cell(scan.cursor or 0)
    found: list[Job] = []
    looked_at = 0
    while cell < CELLS:
        for jobs in table.scan_cells(cell, CELLS):
            cell += 1
            looked_at += len(jobs)
            found += [job for job in jobs if scan.matches(job)]
            if cell < CELLS and scan.enough(len(found), looked_at):
                return cell, found
        cell = table.occupied_cell(cell)
    return 0, found


COMMAND: Final[Command] = Command(
    "jscan",
    -1,
    ("readonly",),
    jscan,
    "jobs",
    "Iterates over the jobs that pass the filters.",
    "[cursor] [COUNT n] [BUSYLOOP] [QUEUE queue] [STATE state] ... [REPLY all|id]",
    "O(jobs looked at)",
)
