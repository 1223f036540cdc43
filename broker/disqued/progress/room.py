"""The progress room of one node: the events that it hears."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.progress.kept import LogWait, Progress

if TYPE_CHECKING:
    from disqued.core.clients.session import Blocked


class ProgressRoom(Progress):
    """Keeps the progress logs of jobs."""

    def cron(self) -> None:
        """Forget logs of jobs that are gone."""
        if self.logs.by_job and not self.state.loading:
            self.logs.visit()

    def all_dropped(self) -> None:
        """Forget all logs."""
        self.logs.forget_all()

    def client_gone(self, blocked: Blocked) -> None:
        """Wait no more for a client that disconnected."""
        if isinstance(blocked, LogWait):
            blocked.stop()
