"""The progress room of one node: the events that it hears."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.progress.kept import LogWait, Progress

if TYPE_CHECKING:
    from mypy_extensions import i64

    from disqued.core.clients.session import Blocked
    from disqued.core.cluster.peer import Peer
    from disqued.core.jobs.job import Job


class ProgressRoom(Progress):
    """Keeps the progress logs of jobs."""

    def cron(self) -> None:
        """Forget logs of jobs that are gone."""
        if self.logs.by_job and not self.state.loading:
            self.logs.visit()

    def copy_confirmed(self, job: Job, peer: Peer, had: i64) -> None:  # noqa: ARG002 - it has the job
        """Send the log of the job along."""
        if self.logs.by_job:
            self.logs.follow(job, peer)

    def all_dropped(self) -> None:
        """Forget all logs."""
        self.logs.forget_all()

    def client_gone(self, blocked: Blocked) -> None:
        """Wait no more for a client that disconnected."""
        if isinstance(blocked, LogWait):
            blocked.stop()
