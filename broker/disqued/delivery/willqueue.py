"""WILLQUEUE: half a second before it queues a job again, a node asks whether another holder did."""

from __future__ import annotations

from typing import Final

from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import DELAYED, QUEUED, Job
from disqued.core.runtime.message import Message
from disqued.core.runtime.outbox import tell_holders
from disqued.core.runtime.state import NodeState
from disqued.delivery.counters import REQUEUES_PREVENTED
from disqued.delivery.lease import is_long
from disqued.delivery.lease import tell as tell_lease
from disqued.delivery.postpone import is_postponed, tell
from disqued.delivery.queued import tell_queued
from disqued.jobmessages import job_held_with


def announce(state: NodeState, job: Job) -> None:
    """Ask the other holders, except those so far behind that their answer would come too late."""
    state.holders.complete(job, state.view)
    delivered = job.delivered
    if delivered is None:
        return
    frame = state.bus.about_job(kinds.WILLQUEUE, job.id)
    peers = state.view.peers
    for node_id in delivered:
        peer = peers.get(node_id)
        if peer is None:
            continue
        link = peer.link
        if link is not None and not link.closed and not link.congested:
            state.ready.put(link, frame)


def handle_willqueue(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Answer if the job is queued here, must not be queued yet, or is with a worker whose retry time is not over.

    The answer goes to all holders, because they are likely to ask next. This node restarts its retry time together with
    them, so that no copy is requeued earlier than the others only because it was asked less often.

    A sender with TRANSFER got the job from a node that had it queued. Only the node to which a worker gave the job back
    for later has it wait: the others may not have heard yet that the delay was ended.
    """
    job = job_held_with(state, peer, frame)
    if job is None:
        return
    if job.state == QUEUED:
        tell_queued(state, job)
        state.lifecycle.postpone(job, state.now_ms)
        state.counters.add(REQUEUES_PREVENTED)
    elif is_postponed(state, job) and (job.flags & DELAYED or not frame.message_flags & kinds.TRANSFER):
        tell(state, peer, job)
        state.counters.add(REQUEUES_PREVENTED)
    elif state.lifecycle.is_leased(job, state.now_ms):
        if is_long(state, job):
            tell_lease(state, peer, job)
        else:
            tell_holders(state, job, state.bus.about_job(kinds.WORKING, job.id))
        state.counters.add(REQUEUES_PREVENTED)


MESSAGE: Final[Message] = Message(
    kinds.WILLQUEUE,
    "WILLQUEUE",
    kinds.OF_JOB_ID,
    "a node that will queue a job in 500 ms, to the other holders; one that has a job queued, to a holder of which it "
    "has just learned; with TRANSFER, one that was given a queued job",
    "QUEUED or SETACK if the sender does not know",
    handle_willqueue,
)
