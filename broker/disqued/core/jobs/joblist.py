"""A list of jobs that is linked through the jobs: adding and removing take constant time and allocate nothing.

A job has one pair of links, so it is in one such list at a time; its `place` says in which.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from disqued.core.jobs.job import Job


@mypyc_attr(acyclic=True)
class JobList:
    """Jobs in the order in which the caller adds them."""

    def __init__(self) -> None:
        self.first: Job | None = None
        self.last: Job | None = None

    def append(self, job: Job) -> None:
        """Put a job behind the last one."""
        last = self.last
        if last is None:
            self.first = job
        else:
            last.queue_next = job
            job.queue_previous = last
        self.last = job

    def prepend(self, job: Job) -> None:
        """Put a job in front of the first one."""
        first = self.first
        if first is None:
            self.last = job
        else:
            first.queue_previous = job
            job.queue_next = first
        self.first = job

    def remove(self, job: Job) -> None:
        """Take a job out and clear its links."""
        previous = job.queue_previous
        following = job.queue_next
        if previous is None:
            self.first = following
        else:
            previous.queue_next = following
            job.queue_previous = None
        if following is None:
            self.last = previous
        else:
            following.queue_previous = previous
            job.queue_next = None
