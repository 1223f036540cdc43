"""The progress of a leaving node, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import gauge
from disqued.leaving.progress import jobs_left
from disqued.leaving.room import leaving_of

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.runtime.subsystem import NodeMetric


def _left(state: NodeState) -> int:
    return jobs_left(state) if state.view.leaving else 0


def _transferred(state: NodeState) -> int:
    drain = leaving_of(state).drain
    return 0 if drain is None else int(drain.progress.transferred)


def _without_target(state: NodeState) -> int:
    drain = leaving_of(state).drain
    return 0 if drain is None else int(drain.progress.without_target)


METRICS: Final[tuple[NodeMetric, ...]] = (
    gauge("disque_leaving", "1 while the node leaves the cluster.", lambda state: int(state.view.leaving)),
    gauge(
        "disque_leaving_jobs_left",
        "Jobs that must leave the node before it can be stopped; 0 if the node does not leave.",
        _left,
    ),
    gauge(
        "disque_leaving_jobs_transferred",
        "Jobs that other nodes took since the node began to leave; 0 if the node does not leave.",
        _transferred,
    ),
    gauge(
        "disque_leaving_jobs_held",
        "Jobs for which the last pass of the leaving node over its jobs found no other node.",
        _without_target,
    ),
)
