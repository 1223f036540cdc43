"""The acks room of one node: which jobs were finished, and which acknowledged jobs must be looked at again."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.acks.done import RecentlyDone
from disqued.acks.gc import collect
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import ACKED, Job
from disqued.core.jobs.table import CELLS
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState

NAME: Final = "acks"
JOBS_PER_VISIT: Final = 1000
"""Jobs looked at per cron tick after a node came or went; a few more, because they come by shards of the table."""


class AcksRoom(Room):
    """Collects acknowledged jobs when their time comes, and all of them after the members changed.

    Left to themselves, jobs that wait for a node would look for it again within three minutes; until then a node that
    is back could deliver them again. A look through all jobs is a whole round from where the last one is, so that no
    job is left out for ever while a node comes and goes.
    """

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.done = RecentlyDone()
        self._next_cell: i64 = 0
        """Cell of the job table at which the current round continues."""
        self._cells_left: i64 = 0
        """Cells that the current round has not looked at yet."""

    def acknowledged(self, job: Job) -> None:
        """Ask the other holders, or forget the job."""
        collect(self.state, job)

    def is_done(self, job_id: bytes) -> bool:
        """Whether this node heard lately that a job which it does not have was finished."""
        return self.done.has(job_id)

    def peer_up(self, _peer: Peer) -> None:
        """Begin another round."""
        self._cells_left = CELLS

    def peer_forgotten(self, _peer: Peer) -> None:
        """Begin another round."""
        self._cells_left = CELLS

    def cron(self) -> None:
        """Look at some more acknowledged jobs of the current round."""
        state = self.state
        table = state.lifecycle.table
        seen: i64 = 0
        while seen < JOBS_PER_VISIT and self._cells_left > 0:
            at: i64 = table.occupied_cell(int(self._next_cell))
            cells = table.scan_cells(int(at), CELLS) if at < CELLS else []  # to the end of the shard
            self._cells_left -= at + len(cells) - self._next_cell
            self._next_cell = (at + len(cells)) % CELLS
            for jobs in cells:
                for job in jobs:
                    seen += 1
                    if job.state == ACKED and job.delivered is not None:
                        collect(state, job)


def acks_of(state: NodeState) -> AcksRoom:
    """The acks room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, AcksRoom)
    return room
