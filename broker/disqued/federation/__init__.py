"""Moves queued jobs to the nodes whose clients wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.core.runtime.subsystem import Subsystem
from disqued.federation import needjobs, yourjobs
from disqued.federation.counters import COUNTERS
from disqued.federation.metrics import METRICS, QUEUE_METRICS
from disqued.federation.room import NAME, FederationRoom

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields


def _info(state: NodeState) -> Fields:
    return [
        ("queues_asked_for", state.demand.needs),
        ("queues_wanted_elsewhere", state.demand.asks),
    ]


SUBSYSTEM = Subsystem(
    NAME,
    FederationRoom,
    messages=(
        Message(kinds.NEEDJOBS, needjobs.needjobs),
        Message(kinds.YOURJOBS, yourjobs.yourjobs),
        Message(kinds.ENOUGH, needjobs.enough),
    ),
    counters=COUNTERS,
    info=_info,
    metrics=METRICS,
    queue_metrics=QUEUE_METRICS,
)
