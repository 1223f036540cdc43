"""Rates and caps broken on purpose, for the mutations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.rates.homes import Homes
from disqued.rates.limiter import QueueLimiter
from disqued.rates.parts import Parts

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job
    from disqued.core.queues.settings import QueueSettings


_tokens = Parts.tokens


def _one_more(self: Parts, settings: QueueSettings) -> int:
    """Grant one token more than the rate gave."""
    return int(_tokens(self, settings)) + 1


def _no_lease(self: QueueLimiter, job: Job) -> None:
    """Forget a job in flight at once."""


def _at_once(self: Homes, name: bytes, home: bytes) -> int:
    """Give the part of a node to any home, also while another one grants tokens by it."""
    del name, home
    return int(self._eras[0].since_ms)


ONE_MORE: Final = ((Parts, "tokens", _one_more),)
GIVEN_TWICE: Final = ((Homes, "given_ms", _at_once),)
NO_LEASES: Final = ((QueueLimiter, "took", _no_lease),)
