"""What the node counts about deliveries and queues, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from disqued.core.queues.order import BANDS
from disqued.core.queues.queue import PAUSED_IN, PAUSED_OUT
from disqued.core.telemetry.metric import GAUGE, Metric, Sample, counter, gauge

if TYPE_CHECKING:
    from disqued.core.runtime.subsystem import QueueMetric, QueueSeen


def _age_s(seen: QueueSeen) -> float:
    oldest = seen.queue.order.oldest()
    return 0.0 if oldest is None else max(seen.now_ms - oldest.created_ms, 0) / 1000


def _paused(seen: QueueSeen) -> Iterator[Sample]:
    pause = int(seen.queue.pause)
    yield (("in",), int(pause & PAUSED_IN != 0))
    yield (("out",), int(pause & PAUSED_OUT != 0))


def _bands(seen: QueueSeen) -> Iterator[Sample]:
    queue = seen.queue
    if queue.order.has_priorities:
        for band, count in zip(BANDS, queue.order.bands(queue.length), strict=True):
            yield ((band,), count)


QUEUE_METRICS: Final[tuple[QueueMetric, ...]] = (
    gauge("disque_queue_jobs", "Jobs in the queue.", lambda seen: int(seen.queue.length)),
    gauge("disque_queue_dead_jobs", "Dead letters in the queue.", lambda seen: int(seen.queue.dead)),
    gauge(
        "disque_queue_leased_jobs",
        "Jobs that workers of the node have and have not acknowledged; at-most-once jobs are not counted.",
        lambda seen: int(seen.queue.leased),
    ),
    gauge(
        "disque_queue_delayed_jobs",
        "Jobs that wait on the node for the end of their delay.",
        lambda seen: int(seen.queue.delayed),
    ),
    gauge(
        "disque_queue_oldest_job_age_seconds",
        "How long ago the oldest job in the queue was created; 0 when it is empty.",
        _age_s,
    ),
    gauge(
        "disque_queue_blocked_clients",
        "Clients that wait for a job of the queue.",
        lambda seen: int(seen.queue.waiting),
    ),
    Metric(
        "disque_queue_priority_jobs",
        GAUGE,
        "Jobs in the queue by priority: below 0, 0, 1 to 9, from 10. Missing for a queue that never had a job with "
        "another priority than 0.",
        _bands,
        ("priority",),
    ),
    Metric(
        "disque_queue_paused",
        GAUGE,
        "1 while the queue takes no jobs (in), or gives none (out).",
        _paused,
        ("direction",),
    ),
    counter(
        "disque_queue_jobs_in_total",
        "Jobs that were put in the queue, with those that came back.",
        lambda seen: int(seen.queue.jobs_in),
    ),
    counter(
        "disque_queue_jobs_out_total",
        "Jobs that left the queue for a client or for another node.",
        lambda seen: int(seen.queue.jobs_out),
    ),
)
