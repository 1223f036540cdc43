"""What the node counts about jobs that move to where clients wait, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import gauge

if TYPE_CHECKING:
    from disqued.core.runtime.subsystem import NodeMetric, QueueMetric, QueueSeen


def _rate(seen: QueueSeen) -> int:
    needs = seen.queue.needs
    return 0 if needs is None else int(needs.rate(seen.now_ms))


METRICS: Final[tuple[NodeMetric, ...]] = (
    gauge(
        "disque_queues_asked_for",
        "Queues whose jobs this node asked others for.",
        lambda state: int(state.demand.needs),
    ),
    gauge(
        "disque_queues_wanted_elsewhere",
        "Queues whose jobs other nodes asked this one for.",
        lambda state: int(state.demand.asks),
    ),
)

QUEUE_METRICS: Final[tuple[QueueMetric, ...]] = (
    gauge(
        "disque_queue_imported_jobs_per_second",
        "Jobs of the queue that come from other nodes, per second of the last one or two.",
        _rate,
    ),
)
