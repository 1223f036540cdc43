"""After a partition: two sides may have added the same job, because its ID was given or derived.

When a node can be reached again, this node tells it of each such job (WILLQUEUE, as a node that imports a job does):
first of those whose home it is, then of the others, because there may have been more than two sides. A node that has
the job too lists this one from then on, and answers. A listed holder gets the message only for jobs that are queued
here: both may have queued the job while they could not reach each other. The rules for two holders that queue a job
leave one of them queued, and an acknowledgement reaches both.
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
from disqued.placing.homes import homes, needs_of

JOBS_PER_VISIT: Final = 100
"""Jobs looked at per node and cron tick: a thousand per second."""


@mypyc_attr(acyclic=True)
class _Visit:
    """What is left to tell one node."""

    def __init__(self, jobs: list[bytes]) -> None:
        self.left = jobs
        """The IDs of jobs to look at."""
        self.others: list[bytes] | None = []
        """The IDs of those whose home the node is not, which follow; None when they are being looked at."""


class Reunion:
    """The nodes that still have to learn of jobs of this node."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._visits: dict[bytes, _Visit] = {}
        """By the ID of the node."""

    def begin(self, peer: Peer) -> None:
        """A node can be reached again."""
        named = self._state.lifecycle.table.named
        if named and peer.features & kinds.FEATURE_ATTRIBUTES:
            self._visits[peer.id] = _Visit(list(named))

    def visit(self) -> None:
        """Tell the nodes of some more jobs."""
        if not self._visits:
            return
        for node_id in list(self._visits):
            peer = self._state.view.peers.get(node_id)
            visit = self._visits[node_id]
            looks: i64 = 0
            while peer is not None and visit.left and looks < JOBS_PER_VISIT:
                self._tell(peer, visit.left.pop(), visit.others)
                looks += 1
            if not visit.left and visit.others:
                visit.left = visit.others
                visit.others = None
            if peer is None or not visit.left:
                del self._visits[node_id]

    def _tell(self, peer: Peer, job_id: bytes, others: list[bytes] | None) -> None:
        """Tell a node of a job if it may not know of this node's copy, or may have it queued as well.

        A job whose home it is not is only noted in `others`, if there is such a list.
        """
        state = self._state
        job = state.lifecycle.table.named.get(job_id)
        if job is None or job.state == WAIT_REPL:
            return
        if job.delivered is not None and lists(job.delivered, peer.id):
            if job.state == QUEUED:
                send(state, peer, state.bus.about_job(kinds.WILLQUEUE, job_id))
        elif others is not None and peer.id not in homes(state, job_id, i64(job.repl), needs_of(job)):
            if job.state != ACKED:
                others.append(job_id)
        elif job.state != ACKED:
            send(state, peer, state.bus.about_job(kinds.WILLQUEUE, job_id))
        elif others is not None and job.delivered is not None:
            send_setack(state, job, peer)

    def clear(self) -> None:
        """All jobs were dropped."""
        self._visits.clear()
