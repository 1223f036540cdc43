"""Clients that are blocked in GETJOB until a queue has a job.

A client that waits for a job has one `WaitForJob`, with a timer for its deadline, and one `JobWait` per queue. The
waits of a queue form an intrusive list in order of arrival, so blocking, serving and timing out take constant time per
queue.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from disqued.core.clients.session import Blocked, Session
from disqued.core.queues.queue import Queue, Wait


@mypyc_attr(acyclic=True)
class WaitForJob(Blocked):
    """A client that waits for a job of any of its queues."""

    def __init__(self, session: Session, with_counters: bool) -> None:
        super().__init__(session)
        self.with_counters: bool = with_counters
        self.waits: list[JobWait] = []


@mypyc_attr(acyclic=True)
class JobWait(Wait):
    """The entry of a client in the waiting clients of one queue."""

    def __init__(self, blocked: WaitForJob, queue: Queue) -> None:
        super().__init__(queue)
        self.blocked = blocked
