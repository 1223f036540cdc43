"""The replication room of one node: places the copies of new jobs."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.clients.blocked import WaitForCopies
from disqued.core.clients.session import Session
from disqued.core.jobs.job import Job
from disqued.core.runtime.room import Room
from disqued.replication import copies

NAME: Final = "replication"


class ReplicationRoom(Room):
    """Answers clients that wait for the copies of their jobs."""

    def copies_wanted(self, session: Session, job: Job, timeout_ms: i64, *, asynchronous: bool, external: bool) -> None:
        """Send the job to other nodes."""
        copies.replicate(self.state, session, job, timeout_ms, asynchronous=asynchronous, external=external)

    def complete(self, job: Job) -> bool:
        """Answer the client as if all nodes had confirmed."""
        return copies.complete(self.state, job)

    def dropped_unplaced(self, job: Job) -> None:
        """Delete the copies and tell the client."""
        copies.lost(self.state, job)

    def client_gone(self, wait: WaitForCopies) -> None:
        """Delete the job wherever it may be."""
        copies.client_gone(self.state, wait)
