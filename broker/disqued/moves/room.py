"""The moves room of one node: makes dead letters, and moves jobs to other queues."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import Job
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.moves.deadletters import DeadLetters
from disqued.moves.move import Moving
from disqued.moves.redriving import Redrives
from disqued.moves.reunion import Reunion

NAME: Final = "moves"


class MovesRoom(Room):
    """Moves jobs to other queues."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.moving = Moving(state)
        self.dead = DeadLetters(state, self.moving)
        self.redrives = Redrives(state, self.moving)
        self.reunion = Reunion(state)

    def attempt_failed(self, job: Job, counting: i64) -> bool:
        """Make a job a dead letter whose last attempt failed."""
        return self.dead.attempt_failed(job, counting)

    def failed_elsewhere(self, job: Job) -> None:
        """Make a job a dead letter that failed too often at nodes that make none."""
        self.dead.failed_elsewhere(job)

    def rejected(self, job: Job) -> bool:
        """Make a job a dead letter that a worker rejected."""
        return self.dead.rejected(job)

    def parent_ended(self, job: Job, why: bytes) -> bool:
        """Make a job a dead letter that waited for one that can no longer be done."""
        return self.dead.parent_ended(job, why)

    def expiring(self, job: Job) -> bool:
        """Make a job a dead letter whose life ended, if its queue wants that."""
        return self.dead.expiring(job)

    def copy_confirmed(self, job: Job, peer: Peer, had: i64) -> None:
        """Count a home that has a successor."""
        self.moving.confirm(job, peer, had)

    def dropped_unplaced(self, job: Job) -> None:
        """End the move of a successor that another node has made and a worker has finished meanwhile."""
        self.moving.dropped(job)

    def peer_up(self, peer: Peer) -> None:
        """Ask for missing copies of successors now, and find jobs that both nodes have."""
        self.moving.hurry()
        self.reunion.begin(peer)

    def cron(self) -> None:
        """Tell nodes that can be reached again of some more jobs, and others of more holders."""
        self.reunion.visit()
        self.moving.tell_skipped()

    def all_dropped(self) -> None:
        """Forget all moves."""
        self.moving.clear()
        self.dead.clear()
        self.redrives.clear()
        self.reunion.clear()


def moves_of(state: NodeState) -> MovesRoom:
    """The moves room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, MovesRoom)
    return room
