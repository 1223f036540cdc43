"""The delivery room of one node: serves waiting clients, and tells other holders what is queued here."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.clients.blocked import WaitForJob
from disqued.core.jobs.job import Job
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import time_out
from disqued.delivery import queued, willqueue
from disqued.delivery.counters import REQUEUED_BY_TIMEOUT
from disqued.delivery.waiters import serve

NAME: Final = "delivery"


class DeliveryRoom(Room):
    """Serves waiting clients and speaks for the jobs that are queued here."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        state.counters.adopt(REQUEUED_BY_TIMEOUT, state.lifecycle.requeued_by_timer)

    def queues_ready(self) -> None:
        """Hand jobs to the clients that wait for them."""
        serve(self.state)

    def wait_timed_out(self, blocked: WaitForJob) -> None:
        """Answer with no job."""
        time_out(self.state, blocked)

    def requeued(self, job: Job, counting: i64) -> None:
        """Tell the other holders (QUEUED)."""
        queued.announce(self.state, job, counting)

    def about_to_requeue(self, job: Job) -> None:
        """Ask the other holders (WILLQUEUE)."""
        willqueue.announce(self.state, job)
