"""Moves queued jobs to the nodes whose clients wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.core.runtime.subsystem import Subsystem
from disqued.federation import needjobs, yourjobs
from disqued.federation.counters import COUNTERS
from disqued.federation.importing import FEATURE_ENOUGH
from disqued.federation.interest import NAME, federation_of
from disqued.federation.metrics import METRICS, QUEUE_METRICS
from disqued.federation.room import FederationRoom

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields


def _info(state: NodeState) -> Fields:
    return [
        ("queues_asked_for", federation_of(state).imported_queues),
        ("queues_wanted_elsewhere", federation_of(state).requested_queues),
    ]


SUBSYSTEM = Subsystem(
    NAME,
    FederationRoom,
    messages=(
        Message(
            kinds.NEEDJOBS,
            "NEEDJOBS",
            kinds.OF_QUEUE,
            "a node whose clients wait, to all or to recent sources; the number says how many jobs",
            "YOURJOBS if the receiver has any",
            needjobs.handle_needjobs,
        ),
        Message(
            kinds.YOURJOBS,
            "YOURJOBS",
            kinds.OF_JOBS,
            "a node that has queued jobs, to one that asked",
            "the receiver queues the jobs",
            yourjobs.handle_yourjobs,
        ),
        Message(
            kinds.ENOUGH,
            "ENOUGH",
            kinds.OF_QUEUE,
            "a node that sent NEEDJOBS and has no waiting clients any more, to nodes with the feature",
            "the receiver forgets the request",
            needjobs.handle_enough,
            feature=FEATURE_ENOUGH,
        ),
    ),
    counters=COUNTERS,
    info=_info,
    metrics=METRICS,
    queue_metrics=QUEUE_METRICS,
)
