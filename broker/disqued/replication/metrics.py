"""Metrics of the copies of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import gauge
from disqued.errors import NotReplicated

if TYPE_CHECKING:
    from disqued.core.runtime.subsystem import NodeMetric

_NOREPL: Final = NotReplicated().code

METRICS: Final[tuple[NodeMetric, ...]] = (
    gauge(
        "disque_jobs_waiting_for_copies",
        "New jobs whose clients wait for enough nodes to have copies.",
        lambda state: int(state.lifecycle.unplaced_jobs),
    ),
)
