"""Metrics of lost copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import gauge
from disqued.repair.room import repair_of

if TYPE_CHECKING:
    from disqued.core.runtime.subsystem import NodeMetric

METRICS: Final[tuple[NodeMetric, ...]] = (
    gauge(
        "disque_jobs_under_replicated",
        "Unfinished jobs with a copy on this node and fewer live copies than REPLICATE, without at-most-once jobs. "
        "Each holder counts them.",
        lambda state: int(repair_of(state).under_replicated),
    ),
)
