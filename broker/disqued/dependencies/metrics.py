"""What Prometheus learns about the held jobs of a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import gauge

if TYPE_CHECKING:
    from disqued.core.runtime.subsystem import QueueMetric

QUEUE_METRICS: Final[tuple[QueueMetric, ...]] = (
    gauge(
        "disque_queue_held_jobs",
        "Jobs that were added on the node and wait for their parents.",
        lambda seen: int(seen.queue.held),
    ),
)
