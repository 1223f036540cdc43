"""The jobs that need another copy, in turns: those that this node repairs first, and those that are for other holders.

A job may end, or get its copy from another node, while it is in the backlog. It is then removed within seconds, because
the node looks at some jobs of the backlog ten times per second.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.job import Job
from disqued.core.runtime.state import NodeState
from disqued.repair.liveness import Liveness

LOOKS_PER_ROUND: Final = 300


class Turn:
    """Jobs that this node may repair from a time on, for one reason."""

    def __init__(self, due_ms: i64, reason: i64) -> None:
        self.due_ms: i64 = due_ms
        self.reason: i64 = reason
        self.jobs: list[Job] = []
        """The next one is the last."""


class Backlog:
    """The backlog of one node."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        """By the time at which they are due."""
        self._at: i64 = 0
        """The turn that is looked through, and the place in it."""
        self._place: i64 = 0

    @property
    def count(self) -> i64:
        """How many jobs there are."""
        total: i64 = 0
        for turn in self._turns:
            total += len(turn.jobs)
        return total

    def clear(self) -> None:
        """Forget all jobs."""
        self._turns = []

    def add(self, job: Job, due_ms: i64, reason: i64) -> None:
        """Add a job, to be repaired from a time on."""
        turns = self._turns
        at: i64 = len(turns)
        while at > 0 and turns[at - 1].due_ms >= due_ms:
            turn = turns[at - 1]
            if turn.due_ms == due_ms and turn.reason == reason:
                turn.jobs.append(job)
                return
            at -= 1
        turn = Turn(due_ms, reason)
        turn.jobs.append(job)
        turns.insert(at, turn)

    def reverse_first(self, due_ms: i64) -> None:
        """Repair the jobs that are due at this time in the order in which they were added.

        Those of later turns are repaired from the end: the holder whose turn comes before began at the other end.
        """
        for turn in self._turns:
            if turn.due_ms == due_ms:
                turn.jobs.reverse()

    def due(self, now_ms: i64) -> Turn | None:
        """The first turn with jobs that may be repaired now; None if there is none."""
        while self._turns and not self._turns[0].jobs:
            del self._turns[0]
        for turn in self._turns:
            if turn.due_ms > now_ms:
                return None
            if turn.jobs:
                return turn
        return None

    def clean(self, state: NodeState, liveness: Liveness) -> None:
        """Look at some jobs, and remove those that have ended or have all copies."""
        looks: i64 = min(LOOKS_PER_ROUND, self.count)
        while looks > 0:
            if self._at >= len(self._turns):
                self._at = 0
                self._place = 0
            jobs = self._turns[self._at].jobs
            if self._place >= len(jobs):
                self._at += 1
                self._place = 0
                continue
            looks -= 1
            job = jobs[self._place]
            if state.lifecycle.table.get(job.id) is job and liveness.is_short(job):
                self._place += 1
            else:
                jobs[self._place] = jobs[-1]
                jobs.pop()
