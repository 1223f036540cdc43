"""What a node that leaves says to the nodes that take a job over, its heirs: from the question to who is to queue it.

The messages are those of `handoff`, and which nodes they go to is decided there.

At-most-once jobs are copied first too, but only to nodes of our own kind, which queue such a copy when told and not by
themselves; so a copy that nobody is told to queue is lost and never a duplicate. The original's nodes get them in a
YOURJOBS, and not before their delay is over. Those that were delivered would never be queued again and are dropped.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.codec import pack_for_bus
from disqued.core.jobs.job import ACTIVE, BCAST_QUEUED, DELIVERED, NOBODY, QUEUED, Job
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState
from disqued.leaving.offer import Offer

# --- while a job is on offer ------------------------------------------------------------------------------------------


def list_holders(state: NodeState, offer: Offer) -> None:
    """Have the job list all that may hold it: this node, who did before, and who is asked to."""
    job = offer.job
    delivered = job.delivered
    if delivered is None:
        delivered = state.holders.keep((state.view.node_id,))
    job.delivered = state.holders.union(delivered, offer.asked)


def ask(state: NodeState, offer: Offer, peers: list[Peer], message_flags: i64) -> None:
    """REPLJOB with all holders, to be followed by the acknowledgement of a job that is done.

    An at-most-once job lists only who is asked: this node's copy is gone before theirs can matter.
    """
    job = offer.job
    told = offer.asked if job.retry_s == 0 and not offer.acknowledged else job.delivered
    assert told is not None
    offer.told = job.delivered
    packed = pack_for_bus(job, state.now_ms, state.holders.pack(told))
    frame = state.bus.jobs(kinds.REPLJOB, [packed], message_flags)
    for peer in peers:
        send(state, peer, frame)
        if offer.acknowledged:
            send(state, peer, state.bus.about_job(kinds.SETACK, job.id))


def within_reach(state: NodeState, offer: Offer) -> list[Peer]:
    """The nodes that confirmed and can still be told something."""
    found: list[Peer] = []
    for node_id in offer.confirmed:
        peer = state.view.peers.get(node_id)
        if peer is not None and peer.reachable and peer.link is not None and not peer.link.closed:
            found.append(peer)
    return found


# --- when it is decided -----------------------------------------------------------------------------------------------


def appoint(state: NodeState, offer: Offer, heir: Peer, holders: list[Peer]) -> None:
    """Tell the heir what to do with the job, and the others of those that have it what they have to know."""
    job = offer.job
    if offer.told is not job.delivered and job.retry_s > 0:
        ask(state, offer, holders, kinds.NOREPLY)
    delay_s = _delay_s(job, state.now_ms)
    if delay_s >= 0:
        send(state, heir, state.bus.about_job(kinds.ENQUEUE, job.id, delay_s, kinds.HANDOVER))
    if job.state == QUEUED:
        _tell_queued(state, job, heir)
    delete_copies(state, offer, holders)


def _delay_s(job: Job, now_ms: i64) -> i64:
    """After how many seconds the heir is to queue the job; -1 to leave that to its retry time.

    A job that waits for the end of its delay was never queued. One that was delayed and is with a worker now would wait
    for delay and retry time once more. Fractions of a second are waited out.
    """
    if job.state == QUEUED:
        return 0
    if job.state != ACTIVE or job.requeue_at_ms == 0:
        return -1
    never_queued = not job.flags & (BCAST_QUEUED | DELIVERED)
    if never_queued or (job.flags & DELIVERED and job.delay_s > 0):
        return max((job.requeue_at_ms - now_ms + 999) // 1000, 0)
    return -1


def _tell_queued(state: NodeState, job: Job, heir: Peer) -> None:
    """Tell the other holders that the job waits in a queue."""
    frame = state.bus.about_job(kinds.QUEUED, job.id)
    for node_id in job.delivered or NOBODY:
        peer = state.view.peers.get(node_id)
        if peer is not None and peer is not heir:
            send(state, peer, frame)


def delete_copies(state: NodeState, offer: Offer, keepers: list[Peer]) -> None:
    """DELJOB to who was asked, is not to keep a copy, and had none before."""
    for node_id in offer.asked:
        peer = state.view.peers.get(node_id)
        if peer is None or peer in keepers or (offer.former is not None and node_id in offer.former):
            continue
        send(state, peer, state.bus.about_job(kinds.DELJOB, offer.job.id))


# --- at-most-once jobs ------------------------------------------------------------------------------------------------


def is_deliverable(job: Job) -> bool:
    """Whether an at-most-once job can still be delivered."""
    return job.state == QUEUED or (job.requeue_at_ms != 0 and not job.flags & DELIVERED)


def give(state: NodeState, job: Job, peer: Peer) -> bool:
    """YOURJOBS, which nobody confirms, to a node of the original; whether it is on its way."""
    packed = pack_for_bus(job, state.now_ms, state.holders.pack(state.holders.keep((peer.id,))))
    return send(state, peer, state.bus.jobs(kinds.YOURJOBS, [packed]))
