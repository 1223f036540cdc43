"""Moves queued jobs to the nodes whose clients wait for them."""

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.core.runtime.subsystem import Subsystem
from disqued.federation import figures, needjobs, yourjobs
from disqued.federation.metrics import METRICS, QUEUE_METRICS
from disqued.federation.room import NAME, FederationRoom

SUBSYSTEM = Subsystem(
    NAME,
    FederationRoom,
    messages=(
        Message(kinds.NEEDJOBS, needjobs.needjobs),
        Message(kinds.YOURJOBS, yourjobs.yourjobs),
        Message(kinds.ENOUGH, needjobs.enough),
    ),
    info=figures.figures,
    metrics=METRICS,
    queue_metrics=QUEUE_METRICS,
)
