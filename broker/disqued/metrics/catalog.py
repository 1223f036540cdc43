"""The list of all metrics of a node: those of the metrics page, which alerts and dashboards can use."""

from __future__ import annotations

from typing import Any, Final

from disqued.core.runtime.subsystem import NodeMetric, QueueMetric
from disqued.core.telemetry.metric import Metric
from disqued.metrics import groups, queues, server
from disqued.node import ROOMS

NODE: Final[tuple[NodeMetric, ...]] = ROOMS.node_metrics
QUEUE: Final[tuple[QueueMetric, ...]] = ROOMS.queue_metrics
QUEUE_LABEL: Final = "queue"
"""The first label of metrics of queues."""

ALL: Final[tuple[Metric[Any], ...]] = (*NODE, *groups.METRICS, *queues.METRICS, *QUEUE, *server.METRICS)
SERIES: Final = frozenset(series for metric in ALL for series in metric.series)
"""The names of all series in Prometheus."""


def labels_of(metric: Metric[Any]) -> tuple[str, ...]:
    """Return the labels of the series of a metric."""
    return (QUEUE_LABEL, *metric.labels) if metric in QUEUE else metric.labels
