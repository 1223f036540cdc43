"""What the node counts about new jobs, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import gauge

if TYPE_CHECKING:
    from disqued.core.runtime.subsystem import NodeMetric

METRICS: Final[tuple[NodeMetric, ...]] = (
    gauge(
        "disque_keys_remembered",
        "Keys under which jobs were added here, as long as their windows last.",
        lambda state: int(state.lifecycle.keys.count),
    ),
)
