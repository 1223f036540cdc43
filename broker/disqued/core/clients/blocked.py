"""Clients that wait: in GETJOB for a job, in ADDJOB for the copies of theirs.

A client that waits for a job is one `WaitForJob` with a timer for its deadline and one `JobWait` per queue. The waits
of a queue form an intrusive list in order of arrival, so that blocking, serving and giving up take constant time per
queue however many clients wait.
"""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from disqued.core.clients.session import Blocked, Session
from disqued.core.jobs.job import Job
from disqued.core.queues.queue import Queue, Wait


@mypyc_attr(acyclic=True)
class WaitForJob(Blocked):
    """A client that waits for a job from any of its queues."""

    def __init__(self, session: Session, with_counters: bool) -> None:
        super().__init__(session)
        self.with_counters: bool = with_counters
        self.waits: list[JobWait] = []


@mypyc_attr(acyclic=True)
class WaitForCopies(Blocked):
    """A client that waits until enough nodes confirmed to have its job."""

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
        """When the client gives up; 0 for never."""
        self.wanted: i64 = wanted
        """How many nodes have to confirm, this one included if it keeps a copy."""
        self.external: bool = external
        """This node keeps no copy."""
        self.held_back: bool = held_back
        """The client asked for ASYNC and waits only as long as the links to the chosen nodes can not take more."""
        self.began_ms: i64 = 0
        """Since when it waits."""
        self.sent_ms: i64 = 0
        """When the job was last sent to anybody."""


@mypyc_attr(acyclic=True)
class JobWait(Wait):
    """The place of one client in the line of one queue."""

    def __init__(self, blocked: WaitForJob, queue: Queue) -> None:
        super().__init__(queue)
        self.blocked = blocked
