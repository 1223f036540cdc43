"""Ordered queues: strictly ordered, replicated by Raft, used by the same commands as queues of jobs.

The room joins three packages that know nothing of a node: the Raft core (`disqued.raft`), the log on disk
(`disqued.raftlog`) and the machine of a queue (`disqued.orderedqueue`).
"""

from disqued.core.runtime.state import NodeState
from disqued.core.runtime.subsystem import Subsystem
from disqued.ordered import (
    beat,
    catalogmessage,
    clusterordered,
    deliver,
    found,
    propose,
    qdrop,
    qnew,
    qtype,
    raftmessage,
    raftsnap,
)
from disqued.ordered.commands import ALTERNATIVES
from disqued.ordered.counters import COUNTERS, MEASURES
from disqued.ordered.metrics import METRICS, QUEUE_METRICS, info
from disqued.ordered.room import NAME, OrderedRoom


def _room(state: NodeState) -> OrderedRoom:
    return OrderedRoom(state, ALTERNATIVES, clusterordered.SUBCOMMANDS)


SUBSYSTEM = Subsystem(
    NAME,
    _room,
    (qnew.COMMAND, qdrop.COMMAND, qtype.COMMAND),
    (
        raftmessage.MESSAGE,
        beat.MESSAGE,
        catalogmessage.CATALOG,
        catalogmessage.CATALOGASK,
        propose.PROPOSE,
        propose.PROPOSED,
        deliver.MESSAGE,
        found.MESSAGE,
        raftsnap.MESSAGE,
    ),
    counters=COUNTERS,
    measures=MEASURES,
    info=info,
    metrics=METRICS,
    queue_metrics=QUEUE_METRICS,
)
