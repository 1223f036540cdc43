"""How far a node is that leaves, for Prometheus."""

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


def _handed_over(state: NodeState) -> int:
    handoff = leaving_of(state).handoff
    return 0 if handoff is None else int(handoff.progress.handed_over)


def _held(state: NodeState) -> int:
    handoff = leaving_of(state).handoff
    return 0 if handoff is None else int(handoff.progress.held)


METRICS: Final[tuple[NodeMetric, ...]] = (
    gauge("disque_leaving", "1 while the node leaves the cluster.", lambda state: int(state.view.leaving)),
    gauge(
        "disque_leaving_jobs_left",
        "Jobs that the node still has to hand over before it can be stopped; 0 of one that stays.",
        _left,
    ),
    gauge(
        "disque_leaving_jobs_handed_over",
        "Jobs that other nodes took since the node began to leave; 0 of one that stays.",
        _handed_over,
    ),
    gauge(
        "disque_leaving_jobs_held",
        "Jobs that the leaving node found nobody for when it last went through them.",
        _held,
    ),
)
