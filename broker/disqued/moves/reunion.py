"""After a partition: two sides may have added the same job, because its ID was given or derived.

When a node can be reached again, this node tells it of each such job whose home it is (WILLQUEUE, as a node that
imports a job does). A node that has the job too lists this one from then on, and answers. A listed holder gets the
message only for jobs that are queued here: both may have queued the job while they could not reach each other. The
rules for two holders that queue a job leave one of them queued, and an acknowledgement reaches both.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.cluster.holders import lists
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import ACKED, QUEUED, WAIT_REPL
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState
from disqued.jobmessages import send_setack
from disqued.placing.homes import homes

JOBS_PER_VISIT: Final = 100
"""Jobs looked at per node and cron tick: a thousand per second."""


@mypyc_attr(acyclic=True)
class Reunion:
    """The nodes that still have to learn of jobs of this node."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._left: dict[bytes, list[bytes]] = {}
        """The IDs of the jobs to look at, by the ID of the node."""

    def begin(self, peer: Peer) -> None:
        """A node can be reached again."""
        named = self._state.lifecycle.table.named
        if named and peer.features & kinds.FEATURE_ATTRIBUTES:
            self._left[peer.id] = list(named)

    def visit(self) -> None:
        """Tell the nodes of some more jobs."""
        if not self._left:
            return
        for node_id in list(self._left):
            peer = self._state.view.peers.get(node_id)
            left = self._left[node_id]
            looks: i64 = 0
            while peer is not None and left and looks < JOBS_PER_VISIT:
                self._tell(peer, left.pop())
                looks += 1
            if peer is None or not left:
                del self._left[node_id]

    def _tell(self, peer: Peer, job_id: bytes) -> None:
        """Tell a node of a job if it may not know of this node's copy, or may have it queued as well."""
        state = self._state
        job = state.lifecycle.table.named.get(job_id)
        if job is None or job.state == WAIT_REPL:
            return
        if job.delivered is not None and lists(job.delivered, peer.id):
            if job.state == QUEUED:
                send(state, peer, state.bus.about_job(kinds.WILLQUEUE, job_id))
            return
        if peer.id not in homes(state, job_id, i64(job.repl)):
            return
        if job.state != ACKED:
            send(state, peer, state.bus.about_job(kinds.WILLQUEUE, job_id))
        elif job.delivered is not None:
            send_setack(state, job, peer)

    def clear(self) -> None:
        """All jobs were dropped."""
        self._left.clear()
