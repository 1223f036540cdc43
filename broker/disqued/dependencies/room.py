"""The dependencies room of one node: holds jobs until their parents are done.

The node that adds a job queues it when all of its parents are met. Each other holder watches the parents by itself,
and then waits for the retry time, as for any copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.jobs.job import ACTIVE
from disqued.core.runtime.parts import first_keys
from disqued.core.runtime.room import Room
from disqued.dependencies.counters import FREED
from disqued.dependencies.otherwise import Otherwise
from disqued.dependencies.parents import PER_TURN, Parents

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState

NAME: Final = "dependencies"


class DependenciesRoom(Room):
    """The held jobs of one node."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.otherwise = Otherwise(state)
        self.parents = Parents(state, self.otherwise)

    def all_dropped(self) -> None:
        """Watch nothing any more."""
        self.parents.forget_all()

    def deadline_ms(self) -> i64:
        """At once if held jobs are new, free, or gone, or if there is news for some."""
        held = self.state.lifecycle.held
        return self.state.now_ms if held.fresh or held.free or held.gone or self.parents.has_work else 0

    def due(self) -> None:
        """Take up what has changed."""
        if self.state.loading or self.state.ending:
            return
        self._let_go()
        self._take_up()
        self.parents.proceed()
        self._free()

    def _let_go(self) -> None:
        gone = self.state.lifecycle.held.gone
        for job_id in first_keys(gone, PER_TURN):
            job = gone.pop(job_id, None)
            if job is not None:
                self.parents.let_go(job)

    def _take_up(self) -> None:
        held = self.state.lifecycle.held
        for job_id in first_keys(held.fresh, PER_TURN):
            if job_id in held.fresh:
                del held.fresh[job_id]
                self.parents.take_up(held.jobs[job_id])

    def _free(self) -> None:
        """Have jobs queued, or planned, whose parents are met."""
        free = self.state.lifecycle.held.free
        for job_id in first_keys(free, PER_TURN):
            job = free.pop(job_id, None)
            if job is not None:
                self._free_job(job)

    def _free_job(self, job: Job) -> None:
        lifecycle = self.state.lifecycle
        if lifecycle.table.get(job.id) is not job or job.state != ACTIVE:
            return  # it has ended; or it is not placed, and it is planned then
        self.state.counters.add(FREED)
        lifecycle.free(job, self.state.now_ms)
        if 0 < job.requeue_at_ms <= self.state.now_ms:
            lifecycle.requeue(job, self.state.now_ms)
