"""Metrics of new jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import gauge

if TYPE_CHECKING:
    from disqued.core.runtime.subsystem import NodeMetric

METRICS: Final[tuple[NodeMetric, ...]] = (
    gauge(
        "disque_keys_remembered",
        "Keys of jobs that were added here, until their windows end.",
        lambda state: int(state.lifecycle.keys.count),
    ),
)
