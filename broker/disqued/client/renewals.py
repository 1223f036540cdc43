"""The jobs that a worker holds, and when to renew each of them with WORKING.

A fetched job returns to its queue when it is not acknowledged within its lease, the rest of its retry time. Nodes of
this broker tell the lease with the job (GETJOB WITHREQUEUE), and the first WORKING is sent at a fixed fraction of it.
Nodes of the original do not, so the first WORKING is sent soon after the fetch. It restarts the retry time and returns
it, and further ones follow at the same fraction of it.

The schedule has no clock: callers pass the time, in seconds of any monotonic clock. Threads can share a schedule: each
step is a single operation of a dictionary, or works on a copy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

RENEW_SHARE = 0.55
"""Fraction of the retry time after which a job is renewed: rarely, but in time for a second attempt."""

TRY_AGAIN_S = 0.25
"""How long to wait before a failed renewal is attempted again."""


@dataclass(slots=True)
class HeldJob:
    """A held job; `due_s` is when to renew it, infinity if it cannot be renewed."""

    due_s: float


class RenewalSchedule:
    """All held jobs, by ID."""

    def __init__(self) -> None:
        self._jobs: dict[str, HeldJob] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def hold(self, job_id: str, due_s: float) -> None:
        """Add a fetched job; its first renewal is due at `due_s`."""
        self._jobs[job_id] = HeldJob(due_s)

    def hold_leased(self, job_id: str, lease_ms: int, now_s: float) -> None:
        """Add a fetched job with the lease that its node told; -1 for a job that is never delivered again."""
        self.hold(job_id, now_s + RENEW_SHARE * lease_ms / 1000 if lease_ms >= 0 else math.inf)

    def release(self, job_id: str) -> bool:
        """Remove a job; False if it was not held any more."""
        return self._jobs.pop(job_id, None) is not None

    def release_all(self) -> list[str]:
        """Remove and return all held jobs, the oldest first."""
        return [job_id for job_id in list(self._jobs) if self.release(job_id)]

    def due(self, now_s: float) -> list[str]:
        """Return the jobs to renew now."""
        return [job_id for job_id, job in list(self._jobs.items()) if job.due_s <= now_s]

    def renewed(self, job_id: str, retry_s: int, now_s: float) -> None:
        """Record a successful renewal; at-most-once jobs (`retry_s` 0) need no further one."""
        self._set_due(job_id, now_s + RENEW_SHARE * retry_s if retry_s else math.inf)

    def not_renewed(self, job_id: str, now_s: float) -> None:
        """Record a renewal that did not reach the node."""
        self._set_due(job_id, now_s + TRY_AGAIN_S)

    def not_renewable(self, job_id: str) -> None:
        """Stop renewing a job: it is about to be finished, or the node refuses to postpone its next delivery."""
        self._set_due(job_id, math.inf)

    def _set_due(self, job_id: str, due_s: float) -> None:
        job = self._jobs.get(job_id)
        if job is not None:
            job.due_s = due_s

    def wait_s(self, now_s: float, longest_s: float) -> float:
        """Return the time until the next renewal is due, at most `longest_s`."""
        due_s = min((job.due_s for job in list(self._jobs.values())), default=math.inf)
        return min(longest_s, max(0.0, due_s - now_s))
