"""The held jobs of one node: those that wait for their parents. A job is held while one of its parents is not met.

The verbs of the lifecycle note here what changes. The dependencies room watches the parents: at the end of the turn it
takes up the jobs that are new (`fresh`) and has those queued whose parents are met (`free`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64, mypyc_attr

from disqued.core.jobs.phases import HELD, phase_of
from disqued.core.timers.alarm import Alarm

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job
    from disqued.core.queues.queue import Queue
    from disqued.core.queues.queues import Queues


@mypyc_attr(acyclic=True)
class HeldFor(Alarm):
    """A job that held jobs of this node wait for. The dependencies room makes it."""

    def __init__(self, parent_id: bytes) -> None:
        super().__init__()
        self.id = parent_id
        self.children: dict[bytes, None] = {}
        """The IDs of the held jobs."""


@mypyc_attr(acyclic=True)
class Held:
    """One held job, and what the node does about it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.is_counted: bool = False
        """Its queue counts it: this node queues it first."""
        self.why = "no node has answered yet"
        """A new job, which is not added yet: which of its parents is not known."""


class HeldJobs:
    """All held jobs of one node."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self.jobs: dict[bytes, Held] = {}
        """By ID."""
        self.fresh: dict[bytes, None] = {}
        """IDs of held jobs whose parents are not watched yet."""
        self.free: dict[bytes, Job] = {}
        """Jobs that are held no longer, and not queued yet."""
        self.gone: dict[bytes, Job] = {}
        """Jobs that are held no longer, or not here any more, and whose parents are watched for them."""
        self.parents: dict[bytes, HeldFor] = {}
        """The jobs that they wait for, by ID; those of jobs that are still `fresh` are missing."""
        self.counted: i64 = 0
        """How many of them this node queues first."""

    def note(self, job: Job, queue: Queue | None) -> None:
        """A held job is here, or this node is now the one that queues it first: then `queue` is its queue."""
        held = self.jobs.get(job.id)
        if held is None:
            held = Held(job)
            self.jobs[job.id] = held
            self.fresh[job.id] = None
        if not held.is_counted and queue is not None and phase_of(job) == HELD:
            held.is_counted = True
            queue.held += 1
            self.counted += 1

    def end(self, job: Job) -> None:
        """A job is held no longer, or is not here any more."""
        held = self.jobs.get(job.id)
        if held is None:
            return
        del self.jobs[job.id]
        if job.id in self.fresh:
            del self.fresh[job.id]
        else:
            self.gone[job.id] = job
        if held.is_counted:
            queue = self._queues.get(job.queue)
            assert queue is not None  # it is in use while it has held jobs
            queue.held -= 1
            self.counted -= 1

    def clear(self) -> None:
        """All jobs were dropped."""
        self.jobs.clear()
        self.fresh.clear()
        self.free.clear()
        self.gone.clear()
        self.counted = 0
