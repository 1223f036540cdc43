"""All metrics of a broker: what the page for Prometheus shows, and what may be named anywhere else."""

from __future__ import annotations

from typing import Any, Final

from disqued.core.runtime.subsystem import NodeMetric, QueueMetric
from disqued.core.telemetry.metric import Metric
from disqued.metrics import queues, surroundings
from disqued.node import ROOMS

NODE: Final[tuple[NodeMetric, ...]] = ROOMS.node_metrics
QUEUE: Final[tuple[QueueMetric, ...]] = ROOMS.queue_metrics
QUEUE_LABEL: Final = "queue"
"""Stands in front of the labels of the latter."""

ALL: Final[tuple[Metric[Any], ...]] = (*NODE, *queues.METRICS, *QUEUE, *surroundings.METRICS)
SERIES: Final = frozenset(series for metric in ALL for series in metric.series)
"""The names under which Prometheus keeps them."""


def labels_of(metric: Metric[Any]) -> tuple[str, ...]:
    """The labels that its series have."""
    return (QUEUE_LABEL, *metric.labels) if metric in QUEUE else metric.labels
