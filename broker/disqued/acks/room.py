"""The acks room of one node: remembers finished jobs, and collects acknowledged ones."""

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
"""Jobs checked per cron tick after a change of the members, rounded up to a shard of the job table."""


class AcksRoom(Room):
    """Collects acknowledged jobs when their wake time comes, and all of them after a change of the members.

    By their wake times, jobs that wait for a node would ask it again within three minutes. Until then a node that has
    returned could deliver them again. A change of the members therefore starts a round through all jobs from the
    current position, so that no job is left out while nodes come and go.
    """

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.done = RecentlyDone()
        self._next_cell: i64 = 0
        """Cell of the job table at which the current round continues."""
        self._cells_left: i64 = 0
        """Cells that the current round has not reached yet."""

    def acknowledged(self, job: Job) -> None:
        """Ask the other holders, or forget the job."""
        collect(self.state, job)

    def is_done(self, job_id: bytes) -> bool:
        """Whether a job that this node does not have was finished recently."""
        return self.done.has(job_id)

    def peer_up(self, _peer: Peer) -> None:
        """Start another round."""
        self._cells_left = CELLS

    def peer_forgotten(self, _peer: Peer) -> None:
        """Start another round."""
        self._cells_left = CELLS

    def cron(self) -> None:
        """Check some more acknowledged jobs of the current round."""
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
