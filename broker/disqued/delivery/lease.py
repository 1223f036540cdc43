"""Leases of another length than RETRY: how long a worker that sent WORKING FOR has its job.

The other holders get POSTPONE with the flag INCR_DELIVERIES: they do not queue the job before the lease is over, and
then it counts as delivered again. A holder that did not get it asks (WILLQUEUE), and gets it as the answer. Nodes that
do not know such leases get WORKING instead, at once and whenever they ask, so they may queue the job early only while
this node cannot be reached.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import ACTIVE, LEASED, NOBODY, POSTPONED, QUEUED, Job
from disqued.core.lifecycle.times import JITTER_MS
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState

MAX_TOLD_MS: Final = (1 << 32) - 1
"""The message has 32 bits for the time. A holder asks again when that is over."""


def can_be_set(job: Job) -> bool:
    """Whether a job comes back at all, and does not wait for a delay that a worker asked for."""
    return job.retry_s > 0 and (job.state == ACTIVE or job.state == QUEUED) and not job.flags & POSTPONED


def set_lease(state: NodeState, job: Job, lease_ms: i64) -> None:
    """Have a job that `can_be_set` come back when this time is over, and tell the other holders."""
    state.lifecycle.park(job, state.now_ms)
    state.lifecycle.requeue_at(job, state.now_ms + lease_ms)
    state.holders.complete(job, state.view)
    for node_id in job.delivered or NOBODY:
        peer = state.view.peers.get(node_id)
        if peer is not None:
            tell(state, peer, job)


def is_long(state: NodeState, job: Job) -> bool:
    """Whether a worker of this node has the job for longer than RETRY."""
    return job.flags & LEASED != 0 and job.requeue_at_ms - state.now_ms > job.retry_s * 1000 + JITTER_MS


def tell(state: NodeState, peer: Peer, job: Job) -> None:
    """Tell another holder how long the worker of this node has the job."""
    if peer.features & kinds.FEATURE_CLAIMS:
        left_ms: i64 = min(max(job.requeue_at_ms - state.now_ms, 0), MAX_TOLD_MS)
        send(state, peer, state.bus.about_job(kinds.POSTPONE, job.id, left_ms, kinds.INCR_DELIVERIES))
    else:
        send(state, peer, state.bus.about_job(kinds.WORKING, job.id))


def follow(state: NodeState, job: Job, lease_ms: i64) -> None:
    """A worker has the job from another node: queue it here only after that, a little later than there."""
    lifecycle = state.lifecycle
    lifecycle.end_lease(job, still_in_flight=True)
    lifecycle.dequeue(job)
    lifecycle.postpone(job, state.now_ms)
    if job.requeue_at_ms != 0:
        shifted_ms: i64 = job.requeue_at_ms - job.retry_s * 1000 + JITTER_MS // 2
        lifecycle.requeue_at(job, shifted_ms + lease_ms)
