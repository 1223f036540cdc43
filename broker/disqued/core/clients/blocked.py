"""Blocked clients: in GETJOB they wait for a job, in ADDJOB for the copies of their job.

A client that waits for a job has one `WaitForJob`, with a timer for its deadline, and one `JobWait` per queue. The
waits of a queue form an intrusive list in order of arrival, so blocking, serving and timing out take constant time per
queue.
"""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from disqued.core.clients.session import Blocked, Session
from disqued.core.jobs.job import Job
from disqued.core.queues.queue import Queue, Wait


@mypyc_attr(acyclic=True)
class WaitForJob(Blocked):
    """A client that waits for a job of any of its queues."""

    def __init__(self, session: Session, with_counters: bool) -> None:
        super().__init__(session)
        self.with_counters: bool = with_counters
        self.waits: list[JobWait] = []


@mypyc_attr(acyclic=True)
class WaitForCopies(Blocked):
    """A client that waits until enough nodes confirm a copy of its job."""

    def __init__(
        self,
        session: Session,
        job: Job,
        deadline_ms: i64,
        wanted: i64,
        *,
        external: bool = False,
        held_back: bool = False,
    ) -> None:
        super().__init__(session)
        self.job = job
        self.deadline_ms: i64 = deadline_ms
        """When the wait times out, in unix milliseconds; 0 for never."""
        self.wanted: i64 = wanted
        """How many nodes must confirm, this node included if it keeps a copy."""
        self.external: bool = external
        """This node keeps no copy."""
        self.held_back: bool = held_back
        """The client asked for ASYNC and waits only until the links to the chosen nodes accept more output."""
        self.began_ms: i64 = 0
        """When the wait began."""
        self.sent_ms: i64 = 0
        """When the job was last sent to a node."""


@mypyc_attr(acyclic=True)
class JobWait(Wait):
    """The entry of a client in the waiting clients of one queue."""

    def __init__(self, blocked: WaitForJob, queue: Queue) -> None:
        super().__init__(queue)
        self.blocked = blocked
