"""The queued jobs with a priority above 0, which a leaving node transfers before all others.

A node visits its queues once, when it begins to leave, and transfers these jobs of each of them in the order of
delivery. The walk through the table, which follows, finds those that could not be transferred then, and those that are
queued later.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.job import Job
from disqued.core.queues.queue import Queue
from disqued.core.queues.queues import Queues

_QUEUES: Final = 50
_JOBS: Final = 100
"""How many queues and jobs are looked at together."""


class Urgent:
    """One pass over these jobs, and its position."""

    def __init__(self) -> None:
        self._cursor: i64 = 0
        """Where the scan of the queues continues."""
        self._scanned: bool = False
        self._queues: list[Queue] = []
        """The queues with priorities that were found and not visited, the next one last."""
        self._jobs: list[Job] = []
        """The next jobs, the first one last."""
        self._last: Job | None = None
        """The last job that was read from the queue that is being visited."""

    @property
    def over(self) -> bool:
        """Whether all these jobs were returned."""
        return self._scanned and not self._queues and not self._jobs

    def next(self, queues: Queues) -> Job | None:
        """The next job; None if none is found after some work: continue unless the pass is `over`."""
        if not self._jobs:
            if self._queues:
                self._read(self._queues[-1])
            elif not self._scanned:
                self._scan(queues)
        return self._jobs.pop() if self._jobs else None

    def _scan(self, queues: Queues) -> None:
        """Find further queues."""
        self._cursor, found = queues.scan(self._cursor, _QUEUES)
        self._scanned = self._cursor == 0
        self._queues = [queue for queue in found if queue.order.has_priorities]

    def _read(self, queue: Queue) -> None:
        """Read further jobs of a queue."""
        found = queue.order.peek(_JOBS, self._last)
        jobs = [job for job in found if job.extra is not None and job.extra.priority > 0]
        if len(jobs) == _JOBS:
            self._last = jobs[-1]
        else:
            self._last = None
            self._queues.pop()
        jobs.reverse()
        self._jobs = jobs
