"""What the node counts about deliveries and queues, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from disqued.core.queues.queue import PAUSED_IN, PAUSED_OUT
from disqued.core.telemetry.metric import COUNTER, GAUGE, Metric, Sample, counter, gauge, histogram

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.runtime.subsystem import NodeMetric, QueueMetric, QueueSeen


def _requeued(state: NodeState) -> Iterator[Sample]:
    stats = state.stats
    yield (("timeout",), int(state.lifecycle.requeued_by_timer))
    yield (("nack",), int(stats.requeued_by_nack))
    yield (("enqueue",), int(stats.requeued_by_enqueue))
    yield (("elsewhere",), int(stats.requeued_elsewhere))


def _age_s(seen: QueueSeen) -> float:
    oldest = seen.queue.oldest()
    return 0.0 if oldest is None else max(seen.now_ms - oldest.ctime // 1_000_000, 0) / 1000


def _paused(seen: QueueSeen) -> Iterator[Sample]:
    pause = int(seen.queue.pause)
    yield (("in",), int(pause & PAUSED_IN != 0))
    yield (("out",), int(pause & PAUSED_OUT != 0))


METRICS: Final[tuple[NodeMetric, ...]] = (
    counter(
        "disque_jobs_delivered_total",
        "Jobs that clients of this node got from their queues, with those that they got again.",
        lambda state: int(state.stats.jobs_delivered),
    ),
    histogram(
        "disque_job_delivery_age_seconds",
        "How old jobs were when a client got them, from their creation on.",
        lambda state: state.stats.delivery_age,
    ),
    Metric(
        "disque_jobs_requeued_total",
        COUNTER,
        "Jobs that came back to a queue: because their retry time was over (also when the worker got them from a node "
        "that is gone), a worker said NACK or ENQUEUE, or another node asked for it, which leaves or is short of "
        "memory and had the job.",
        _requeued,
        ("reason",),
    ),
    counter(
        "disque_queued_ties_lost_total",
        "Jobs taken out of a queue because another node queued them too.",
        lambda state: int(state.stats.queued_ties_lost),
    ),
    counter(
        "disque_requeues_averted_total",
        "Requeues by other nodes that this one prevented: it has the job queued, or with a worker.",
        lambda state: int(state.stats.requeues_averted),
    ),
)

QUEUE_METRICS: Final[tuple[QueueMetric, ...]] = (
    gauge("disque_queue_jobs", "Jobs in the queue.", lambda seen: int(seen.queue.length)),
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
