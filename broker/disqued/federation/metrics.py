"""What the node counts about jobs that move to where clients wait, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import counter, gauge

if TYPE_CHECKING:
    from disqued.core.runtime.subsystem import NodeMetric, QueueMetric, QueueSeen


def _rate(seen: QueueSeen) -> int:
    needs = seen.queue.needs
    return 0 if needs is None else int(needs.rate(seen.now_ms))


METRICS: Final[tuple[NodeMetric, ...]] = (
    counter(
        "disque_jobs_imported_total",
        "Queued jobs that came from other nodes because clients wait for them here.",
        lambda state: int(state.stats.jobs_imported),
    ),
    counter(
        "disque_jobs_imported_at_most_once_total",
        "Those of them that exist here only from then on.",
        lambda state: int(state.stats.imported_at_most_once),
    ),
    counter(
        "disque_jobs_exported_total",
        "Queued jobs that were sent to other nodes because clients wait for them there.",
        lambda state: int(state.stats.jobs_exported),
    ),
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
