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

NAME: Final = "moves"


class MovesRoom(Room):
    """Moves jobs to other queues."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.moving = Moving(state)
        self.dead = DeadLetters(state, self.moving)
        self.redrives = Redrives(state, self.moving)

    def attempt_failed(self, job: Job, counting: i64) -> bool:
        """Make a job a dead letter whose last attempt failed."""
        return self.dead.attempt_failed(job, counting)

    def rejected(self, job: Job) -> bool:
        """Make a job a dead letter that a worker rejected."""
        return self.dead.rejected(job)

    def expiring(self, job: Job) -> bool:
        """Make a job a dead letter whose life ended, if its queue wants that."""
        return self.dead.expiring(job)

    def copy_confirmed(self, job: Job, peer: Peer) -> None:
        """Count a home that has a successor."""
        self.moving.confirm(job, peer)

    def peer_up(self, _peer: Peer) -> None:
        """Ask for missing copies of successors now."""
        self.moving.hurry()

    def all_dropped(self) -> None:
        """Forget all moves."""
        self.moving.clear()
        self.dead.clear()
        self.redrives.clear()


def moves_of(state: NodeState) -> MovesRoom:
    """The moves room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, MovesRoom)
    return room
