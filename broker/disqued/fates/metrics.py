"""Metrics of the records of finished jobs, and of the jobs that are watched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import gauge

if TYPE_CHECKING:
    from disqued.core.runtime.subsystem import NodeMetric

METRICS: Final[tuple[NodeMetric, ...]] = (
    gauge("disque_job_records", "Records of finished jobs.", lambda state: int(state.records.count)),
    gauge(
        "disque_job_records_bytes",
        "Memory that the records of finished jobs take.",
        lambda state: int(state.records.used_bytes),
    ),
    gauge(
        "disque_job_watches",
        "Jobs whose end somebody waits for, on this node or on another one.",
        lambda state: len(state.lifecycle.watched),
    ),
)
