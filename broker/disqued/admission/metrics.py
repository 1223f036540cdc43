"""What the node counts about new jobs, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.metric import counter

if TYPE_CHECKING:
    from disqued.core.metric import NodeMetric

METRICS: Final[tuple[NodeMetric, ...]] = (
    counter(
        "disque_jobs_added_total",
        "Jobs that clients added here and got the IDs of, whoever keeps them.",
        lambda state: int(state.stats.jobs_added),
    ),
)
