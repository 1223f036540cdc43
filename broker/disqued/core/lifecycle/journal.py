"""The journal: the verbs of the lifecycle note here what changed, and the persistence room turns it into records.

Notes become bytes once per turn of the event loop (`persistence.records`). A job is therefore logged as it is at the
end of the turn, with its holders and with the flag of a delivery in the same turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job
    from disqued.core.queues.queue import Queue


class Journal:
    """The changes of this turn, in order. While it is off, nothing is noted."""

    def __init__(self) -> None:
        self.on: bool = False
        """Whether changes are logged. Set by the persistence room."""
        self.changes: list[object] = []
        """Each note is a job to keep, the ID of a job to forget, or a queue whose pause changed."""

    def keep(self, job: Job) -> None:
        """Note that the job must survive a restart, until `forget`."""
        if self.on:
            self.changes.append(job)

    def forget(self, job: Job) -> None:
        """Note that the job is done or gone and must not come back after a restart."""
        if self.on:
            self.changes.append(job.id)

    def paused(self, queue: Queue) -> None:
        """Note that the pause of the queue changed."""
        if self.on:
            self.changes.append(queue)
