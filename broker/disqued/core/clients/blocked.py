"""Clients that are blocked in GETJOB until a queue has a job.

A client that waits for a job has one `WaitForJob`, with a timer for its deadline, and one `JobWait` per queue. The
waits of a queue form an intrusive list in order of arrival, so blocking, serving and timing out take constant time per
queue.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.clients.session import Blocked, Session
from disqued.core.queues.patterns import QueuePattern
from disqued.core.queues.queue import Queue, Wait

COUNTERS: Final = 1
"""The counters of a job, `nacks` and `additional-deliveries`."""
REQUEUE: Final = 2
"""The time until the node queues the job again, `requeue-in-ms`."""
META: Final = 4
"""What its producer gave with the body, `meta` and `priority`."""
CLAIM: Final = 8
"""The number of the delivery, `claim`, and how long the worker has the job, `lease`."""


@mypyc_attr(acyclic=True)
class WaitForJob(Blocked):
    """A client that waits for a job of any of its queues."""

    def __init__(self, session: Session, fields: i64) -> None:
        super().__init__(session)
        self.fields: i64 = fields
        """What the reply has besides queue, ID and body: the sum of `COUNTERS`, `REQUEUE`, `META`, `CLAIM`."""
        self.waits: list[JobWait] = []
        self.patterns: list[QueuePattern] = []
        """The patterns it waits for, besides the queues."""


@mypyc_attr(acyclic=True)
class JobWait(Wait):
    """The entry of a client in the waiting clients of one queue."""

    def __init__(self, blocked: WaitForJob, queue: Queue) -> None:
        super().__init__(queue)
        self.blocked = blocked
