"""Nodes that may have a job of this node under the same ID, unknown to it.

Homes are chosen among the nodes that the adding node reaches (`homes`). Two nodes that reach different ones may choose
homes that have none in common, and then no holder knows all others, whether or not the homes reach each other.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.holders import lists
from disqued.core.jobs.job import NOBODY, Job
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState
from disqued.placing.homes import homes, needs_of

_WITH_NEXT: Final = 2
"""Nodes that may be the home of a job with one copy: the best one, and the next for nodes that do not reach that."""


def ask_other_homes(state: NodeState, job: Job) -> None:
    """Tell the homes that are not listed as holders of a job that this node has it now (WILLQUEUE).

    A node that has the job too lists this one from then on and answers, and one of the two gives way. The lists of a
    job with more copies have a node in common if they were made without one of the homes, and that node tells all
    (`replication.repljob`). So on a cluster where all nodes reach each other, only a job with one copy costs a message.
    """
    listed = job.delivered or NOBODY
    copies = i64(job.repl)
    for node_id in homes(state, job.id, max(copies, _WITH_NEXT), needs_of(job)):
        peer = state.view.peers.get(node_id)
        if peer is not None and peer.features & kinds.FEATURE_ATTRIBUTES and not lists(listed, node_id):
            send(state, peer, state.bus.about_job(kinds.WILLQUEUE, job.id))
