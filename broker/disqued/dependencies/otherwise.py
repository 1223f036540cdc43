"""What becomes of a held job when a parent can no longer be done (ADDJOB ELSE).

Each holder of the job decides by itself. They act one after the other, in the order of their scores for the job: when
the first one has acted, the job has ended for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.fates.fate import DELETED
from disqued.core.jobs.attributes import AFTER, changed
from disqued.core.jobs.job import ACTIVE, Job
from disqued.core.jobs.parents import ELSE_DEAD, ELSE_RUN, action_of, unmet_of, with_met
from disqued.core.timers.alarm import Alarm
from disqued.dependencies.counters import OTHERWISE
from disqued.placing.homes import live_holders

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.dependencies.parent import Parent

TURN_MS: Final = 2500
"""How long each holder of a job gives the one before it."""


@mypyc_attr(acyclic=True)
class Turn(Alarm):
    """A held job, and when this node acts."""

    def __init__(self, otherwise: Otherwise, job: Job, parent: Parent) -> None:
        super().__init__()
        self._otherwise = otherwise
        self.job = job
        self.parent = parent

    def ring(self, state: Any) -> None:
        """Act, unless another holder did, or the parent turned out to live."""
        del state
        self._otherwise.act(self)


class Otherwise:
    """The held jobs of one node whose parents can no longer be done."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._turns: dict[bytes, Turn] = {}
        """By the ID of the job."""

    def begin(self, job: Job, parent: Parent) -> None:
        """A parent of a held job can no longer be done. A job that is not added yet is left alone: it is refused."""
        if job.state != ACTIVE:
            return
        if action_of(job.after) == ELSE_RUN:
            self._state.counters.add(OTHERWISE[ELSE_RUN])
            parent.children.pop(job.id, None)
            self._state.lifecycle.set_attributes(job, changed(job.extra, {AFTER: with_met(job.after, parent.id)}))
        elif job.id not in self._turns:
            turn = Turn(self, job, parent)
            self._turns[job.id] = turn
            rank: i64 = live_holders(self._state, job).index(self._state.view.node_id)
            if rank == 0:
                self.act(turn)
            else:
                self._state.lifecycle.timers.arm(turn, self._state.now_ms + rank * TURN_MS)

    def act(self, turn: Turn) -> None:
        """Make the job a dead letter, or delete it."""
        job = turn.job
        del self._turns[job.id]
        lifecycle = self._state.lifecycle
        if lifecycle.table.get(job.id) is not job or job.state != ACTIVE or not job.is_held:
            return
        if not turn.parent.gone or turn.parent.id not in unmet_of(job.after):
            return
        action = action_of(job.after)
        self._state.counters.add(OTHERWISE[action])
        if action == ELSE_DEAD and self._state.events.parent_ended(job, turn.parent.gone):
            return
        if lifecycle.acknowledge(job, self._state.now_ms, DELETED):
            self._state.events.acknowledged(job)

    def clear(self) -> None:
        """All jobs were dropped."""
        for turn in self._turns.values():
            self._state.lifecycle.timers.disarm(turn)
        self._turns.clear()
