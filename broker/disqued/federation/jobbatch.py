"""Job batches: jobs that leave a queue together for another node, in one YOURJOBS.

A node of the original, and one that does not know the settings of the queue, delivers jobs without limits. So this node
spends a token for each job of a queue with limits that it sends there, as if it delivered it.

A job with a retry time stays here as an active copy, and the other node is added to its holders before it is sent, so
that its acknowledgement reaches both. An at-most-once job moves: the other node is its only holder from then on.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.codec import pack_plain
from disqued.core.jobs.job import INCOMPLETE, NOBODY, Job
from disqued.core.queues.limited import take_limited
from disqued.core.queues.queue import Queue
from disqued.core.runtime.claiming import end_claim
from disqued.core.runtime.outbox import send, send_when_logged
from disqued.core.runtime.state import NodeState
from disqued.federation.counters import JOBS_EXPORTED
from disqued.federation.interest import federation_of

MAX_BYTES: Final = 1 << 20
"""No job is added to a larger batch, and none is sent on a link on which more waits to be written."""


def can_be_sent_to(peer: Peer) -> bool:
    """Whether jobs would arrive; at-most-once jobs on a broken link, or on one that is never established, are lost."""
    link = peer.link
    if link is None or link.closed or not link.answered or link.congested or link.out_bytes > MAX_BYTES:
        return False
    return peer.reachable


@mypyc_attr(acyclic=True)
class JobBatch:
    """Up to `room` jobs for one node."""

    def __init__(self, state: NodeState, peer: Peer, room: i64) -> None:
        holders = state.holders
        self.peer = peer
        self.room: i64 = room
        self.jobs: i64 = 0
        self._pair = holders.keep((state.view.node_id, peer.id))
        """The holders of a job that this node held alone."""
        self._pair_packed = holders.pack(self._pair)
        self._bus_jobs = federation_of(state).bus_jobs
        self._packed: list[bytes] = []
        self._bytes: i64 = 0
        self._moved: list[Job] = []
        """At-most-once jobs, which are dropped here."""

    def take(self, state: NodeState, queue: Queue) -> bool:
        """Add the oldest job of a queue; returns whether another one can be added."""
        spends = queue.limiter is not None and not self.peer.keeps_limits
        job = take_limited(queue, state.now_ms) if spends else state.lifecycle.take(queue, state.now_ms)
        if job is None:
            return False
        node_id = self.peer.id
        holders = state.holders
        if job.retry_s > 0:
            if job.flags & INCOMPLETE:
                holders.complete(job, state.view)
            delivered = job.delivered
            if delivered is None:
                job.delivered = self._pair
                listed = self._pair_packed
            else:
                job.delivered = holders.plus(delivered, node_id)
                listed = holders.pack(job.delivered)
        else:
            self._moved.append(job)
            listed = holders.pack(holders.plus(NOBODY, node_id))
        if job.is_whole_with(self.peer.features):
            packed = self._bus_jobs.pack(job, state.now_ms, listed)
        else:
            packed = pack_plain(job, state.now_ms, listed)
        end_claim(state, job, self.peer)
        self._packed.append(packed)
        self._bytes += len(packed)
        self.jobs += 1
        # The retry time restarts where the job is queued now; this copy must not be faster.
        state.lifecycle.end_lease(job, still_in_flight=spends)
        state.lifecycle.postpone(job, state.now_ms)
        return self.jobs < self.room and self._bytes < MAX_BYTES

    def send(self, state: NodeState) -> None:
        """Send the jobs and drop those that moved, which must not return here once they are sent."""
        frame = state.bus.jobs(kinds.YOURJOBS, self._packed)
        state.counters.add(JOBS_EXPORTED, self.jobs)
        for job in self._moved:
            state.lifecycle.journal.move(job)
            state.lifecycle.drop(job)
        if self._moved:
            send_when_logged(state, self.peer, frame)
        else:
            send(state, self.peer, frame)
