"""All metrics of a broker, as one list: what the page for Prometheus shows, and what may be named anywhere else."""

from __future__ import annotations

from typing import Any, Final

from disqued.core.telemetry.metric import Metric
from disqued.metrics import queues, surroundings
from disqued.node import SUBSYSTEMS

NODE: Final = tuple(metric for room in SUBSYSTEMS for metric in room.node_metrics())
QUEUE: Final = tuple(metric for room in SUBSYSTEMS for metric in room.queue_metrics)
QUEUE_LABEL: Final = "queue"
"""Stands in front of the labels of the latter."""

ALL: Final[tuple[Metric[Any], ...]] = (*NODE, *queues.METRICS, *QUEUE, *surroundings.METRICS)
SERIES: Final = frozenset(series for metric in ALL for series in metric.series)
"""The names under which Prometheus keeps them."""


def labels_of(metric: Metric[Any]) -> tuple[str, ...]:
    """The labels that its series have."""
    return (QUEUE_LABEL, *metric.labels) if metric in QUEUE else metric.labels
