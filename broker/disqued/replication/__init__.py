"""Places the copies of a new job on other nodes before its client gets a reply, and keeps copies for other nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.core.runtime.subsystem import Subsystem
from disqued.replication.counters import COUNTERS, MEASURES
from disqued.replication.gotjob import handle_gotjob, handle_gotjobs
from disqued.replication.metrics import METRICS
from disqued.replication.repljob import handle_repljob
from disqued.replication.room import NAME, ReplicationRoom

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields


def _info(state: NodeState) -> Fields:
    return [("replications_waiting", int(state.lifecycle.unplaced_jobs))]


SUBSYSTEM = Subsystem(
    NAME,
    ReplicationRoom,
    messages=(
        Message(
            kinds.REPLJOB,
            "REPLJOB",
            kinds.OF_JOBS,
            "a node that takes new jobs, to the nodes that get a copy; many in one message only to nodes with GOTJOBS",
            "the receiver keeps the copies; GOTJOB unless NOREPLY",
            handle_repljob,
        ),
        Message(
            kinds.GOTJOB,
            "GOTJOB",
            kinds.OF_JOB_ID,
            "a node that keeps a copy, to the node that sent it; the number is 1 if another node of ours added the "
            "same job a while ago, 2 if it did a moment ago",
            "counts for REPLICATE; the client is answered when there are enough",
            handle_gotjob,
        ),
        Message(
            kinds.GOTJOBS,
            "GOTJOBS",
            kinds.OF_JOB_IDS,
            "as GOTJOB, for the jobs of one turn of the event loop, to nodes with the feature",
            "as GOTJOB for each job",
            handle_gotjobs,
            feature=kinds.FEATURE_COPIES,
        ),
    ),
    counters=COUNTERS,
    measures=MEASURES,
    info=_info,
    metrics=METRICS,
)
