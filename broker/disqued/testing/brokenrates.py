"""Rates and caps broken on purpose, for the mutations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.rates.bucket import Bucket
from disqued.rates.limiter import QueueLimiter

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job


def _whole(self: Bucket) -> float:
    """Grant for all members, whichever can be seen."""
    self._members = self._state.view.size
    return 1.0


def _no_lease(self: QueueLimiter, job: Job) -> None:
    """Forget a job in flight at once."""


WHOLE_LIMITS: Final = ((Bucket, "_share_of_members", _whole),)
NO_LEASES: Final = ((QueueLimiter, "took", _no_lease),)
