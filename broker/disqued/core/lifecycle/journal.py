"""What changed and is to be logged: the verbs of the lifecycle note it, the persistence room turns it into records.

Notes are turned into bytes once per turn of the event loop (`persistence.records`), so a job is logged as it is then:
with the holders it was sent to, and with the mark of a delivery that came at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job
    from disqued.core.queues.queue import Queue


class Journal:
    """The changes since the last turn, in order. Nothing is noted while it is off."""

    def __init__(self) -> None:
        self.on: bool = False
        """Whether anybody writes down what is noted; kept by the persistence room."""
        self.changes: list[object] = []
        """A job that is to be found after a restart, the ID of one that is not, or a queue whose pause changed."""

    def keep(self, job: Job) -> None:
        """The job is here to stay until `forget`."""
        if self.on:
            self.changes.append(job)

    def forget(self, job: Job) -> None:
        """The job is done or gone, and is not to come back."""
        if self.on:
            self.changes.append(job.id)

    def paused(self, queue: Queue) -> None:
        """The pause of the queue changed."""
        if self.on:
            self.changes.append(queue)
