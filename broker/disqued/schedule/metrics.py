"""Metrics of schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import gauge
from disqued.schedule.room import schedule_of

if TYPE_CHECKING:
    from disqued.core.runtime.subsystem import NodeMetric

METRICS: Final[tuple[NodeMetric, ...]] = (
    gauge("disque_schedules", "Schedules that this node knows.", lambda state: schedule_of(state).count_set()),
    gauge(
        "disque_schedules_overdue",
        "Schedules that were due more than 90 seconds ago and, as far as this node knows, did not run.",
        lambda state: schedule_of(state).count_overdue(),
    ),
    gauge(
        "disque_schedules_without_majority",
        "Schedules with STRICT that cannot run on this node's side of the cluster, because it is not the majority.",
        lambda state: schedule_of(state).count_stopped(),
    ),
)
