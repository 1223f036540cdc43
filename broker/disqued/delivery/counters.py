"""What the delivery room counts."""

from __future__ import annotations

from typing import Final

from disqued.core.runtime.counters import STALE_REFUSED
from disqued.core.telemetry.counter import Counter, Measure
from disqued.core.telemetry.histogram import PER_MS

JOBS_DELIVERED: Final = Counter(
    "jobs_delivered", "Jobs delivered to clients of this node, repeated deliveries included.", shown=False
)
_REQUEUED: Final = (
    "Jobs that came back to a queue: because their retry time was over (also when the worker got them from a node "
    "that is gone), because a worker sent NACK or ENQUEUE, or because another node asked for it, which leaves or is "
    "short of memory and had the job."
)
REQUEUED_BY_TIMEOUT: Final = Counter(
    "requeued_timeout", _REQUEUED, metric="disque_jobs_requeued_total", labels=(("reason", "timeout"),), shown=False
)
REQUEUED_BY_NACK: Final = Counter(
    "requeued_nack", _REQUEUED, metric="disque_jobs_requeued_total", labels=(("reason", "nack"),), shown=False
)
REQUEUED_BY_ENQUEUE: Final = Counter(
    "requeued_enqueue", _REQUEUED, metric="disque_jobs_requeued_total", labels=(("reason", "enqueue"),), shown=False
)
REQUEUED_ELSEWHERE: Final = Counter(
    "requeued_elsewhere", _REQUEUED, metric="disque_jobs_requeued_total", labels=(("reason", "elsewhere"),), shown=False
)
DUPLICATE_ENQUEUES_DROPPED: Final = Counter(
    "duplicate_enqueues_dropped", "Jobs taken out of a queue because another node queued them too."
)
CLAIMS: Final = Counter("claims", "Deliveries with a claim.")
REQUEUES_PREVENTED: Final = Counter(
    "requeues_prevented", "Requeues by other nodes that this one prevented: it has the job queued, or with a worker."
)
COUNTERS: Final = (
    JOBS_DELIVERED,
    REQUEUED_BY_TIMEOUT,
    REQUEUED_BY_NACK,
    REQUEUED_BY_ENQUEUE,
    REQUEUED_ELSEWHERE,
    DUPLICATE_ENQUEUES_DROPPED,
    REQUEUES_PREVENTED,
    CLAIMS,
    STALE_REFUSED,
)

_AGES_MS: Final[tuple[int, ...]] = (
    *(5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000),
    *(60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000),
)
DELIVERY_AGE: Final = Measure(
    "disque_job_delivery_age_seconds", "Age of jobs when they were delivered, from their creation on.", _AGES_MS, PER_MS
)
MEASURES: Final = (DELIVERY_AGE,)
