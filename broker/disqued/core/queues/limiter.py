"""What holds back the jobs of a queue whose deliveries are limited in the whole cluster (`rate`, `inflight`).

The rates room derives its own limiter. A queue without limits has none, so its deliveries pay one pointer test.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.job import Job
from disqued.core.timers.alarm import Alarm

NOTHING: Final = 0
RATE: Final = 1
IN_FLIGHT: Final = 2
HOME: Final = 3
REASONS: Final = (b"no", b"rate", b"inflight", b"home")
"""By what holds jobs back: nothing, the rate, the jobs in flight, or the node that grants tokens does not answer."""


class Limiter(Alarm):
    """The limits of one queue on one node. Each delivery needs a token."""

    def __init__(self) -> None:
        super().__init__()
        self.leases: dict[bytes, Job] | None = None
        """The jobs in flight that this node delivered, by ID; None if they are not counted."""

    def admits(self, now_ms: i64) -> bool:
        """Spend a token for a delivery; False if there is none. Then the clients are served when there is one."""
        raise NotImplementedError

    def has_token(self, now_ms: i64) -> bool:
        """Whether a delivery is possible now, as far as this node knows."""
        raise NotImplementedError

    def took(self, job: Job) -> None:
        """A job was delivered with a token."""
        if self.leases is not None:
            self.leases[job.id] = job

    def lease_over(self, job: Job, *, dropped: bool) -> None:
        """A job is no longer in flight: it is done, queued again, postponed or expired. It may not have been.

        `dropped`: this node forgets the job, which may be because another node has it now.
        """
        raise NotImplementedError

    def holds_back(self, now_ms: i64) -> i64:
        """Why clients wait although there are jobs: one of the reasons above; NOTHING if they do not."""
        raise NotImplementedError
