"""What the node counts about jobs that move to where clients wait, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import gauge
from disqued.federation.interest import federation_of

if TYPE_CHECKING:
    from disqued.core.runtime.subsystem import NodeMetric, QueueMetric, QueueSeen


def _rate(seen: QueueSeen) -> int:
    watcher = seen.queue.watcher
    return 0 if watcher is None else int(watcher.import_rate(seen.now_ms))


METRICS: Final[tuple[NodeMetric, ...]] = (
    gauge(
        "disque_queues_asked_for",
        "Queues whose jobs this node asked others for.",
        lambda state: int(federation_of(state).imported_queues),
    ),
    gauge(
        "disque_queues_wanted_elsewhere",
        "Queues whose jobs other nodes asked this one for.",
        lambda state: int(federation_of(state).requested_queues),
    ),
)

QUEUE_METRICS: Final[tuple[QueueMetric, ...]] = (
    gauge(
        "disque_queue_imported_jobs_per_second",
        "Jobs of the queue that come from other nodes, per second of the last one or two.",
        _rate,
    ),
)
