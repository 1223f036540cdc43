"""What the node counts about new jobs, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import counter, gauge

if TYPE_CHECKING:
    from disqued.core.runtime.subsystem import NodeMetric

METRICS: Final[tuple[NodeMetric, ...]] = (
    counter(
        "disque_jobs_added_total",
        "Jobs that clients added here and got the IDs of, whoever keeps them.",
        lambda state: int(state.stats.jobs_added),
    ),
    counter(
        "disque_jobs_deduplicated_total",
        "Adds that were answered with the ID of a job that was added here before under the same key.",
        lambda state: int(state.stats.jobs_deduplicated),
    ),
    gauge(
        "disque_keys_remembered",
        "Keys under which jobs were added here, as long as their windows last.",
        lambda state: int(state.lifecycle.keys.count),
    ),
)
