"""The messages of a leaving node to the new owners of a job, from the REPLJOB to the ENQUEUE.

`drain` explains the messages and decides which nodes they are sent to.

At-most-once jobs are copied first too, but only to nodes of our own kind, which queue such a copy when they are told to
and never by themselves. A copy that no node is told to queue is therefore lost and never a duplicate. Nodes of the
original get these jobs in a YOURJOBS, after their delay is over. Those that were delivered would never be queued again
and are dropped.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.codec import pack_plain
from disqued.core.jobs.job import ACTIVE, BCAST_QUEUED, DELIVERED, NOBODY, POSTPONED, QUEUED, Job
from disqued.core.runtime.outbox import send, send_when_logged
from disqued.core.runtime.state import NodeState
from disqued.jobmessages import fate_to_send, send_repljob, send_setrec
from disqued.leaving.transfer import Transfer

# --- while a job is in flight -----------------------------------------------------------------------------------------


def list_holders(state: NodeState, transfer: Transfer) -> None:
    """Make the job list all nodes that may hold it: this node, its former holders, and the nodes that are asked."""
    job = transfer.job
    state.holders.complete(job, state.view)
    delivered = job.delivered
    if delivered is None:
        delivered = state.holders.keep((state.view.node_id,))
    job.delivered = state.holders.union(delivered, transfer.asked)


def ask(state: NodeState, transfer: Transfer, peers: list[Peer], message_flags: i64) -> None:
    """Send the job with all its holders (REPLJOB), and its acknowledgement (SETACK) if it is done.

    An at-most-once job lists only the nodes that are asked: this node drops its copy before theirs can matter.
    """
    job = transfer.job
    listed = transfer.asked if job.retry_s == 0 and not transfer.acknowledged else job.delivered
    assert listed is not None
    transfer.listed = job.delivered
    send_repljob(state, job, peers, state.holders.pack(listed), message_flags)
    if transfer.acknowledged:
        for peer in peers:
            fate = fate_to_send(state, job) if peer.features & kinds.FEATURE_FATES else None
            if fate is None:
                send(state, peer, state.bus.about_job(kinds.SETACK, job.id))
            else:
                send_setrec(state, job.id, fate, peer, 0)


def connected_owners(state: NodeState, transfer: Transfer) -> list[Peer]:
    """The nodes that confirmed the job and that messages can still be sent to."""
    found: list[Peer] = []
    for node_id in transfer.confirmed:
        peer = state.view.peers.get(node_id)
        if peer is not None and peer.reachable and peer.link is not None and not peer.link.closed:
            found.append(peer)
    return found


# --- when enough nodes have it ----------------------------------------------------------------------------------------


def assign(state: NodeState, transfer: Transfer, owner: Peer, holders: list[Peer]) -> None:
    """Tell one new owner when to queue the job, which was dropped here, and tell the other holders what changed."""
    job = transfer.job
    if transfer.listed is not job.delivered and job.retry_s > 0:
        ask(state, transfer, holders, kinds.NOREPLY)
    delay_s = _delay_s(job, state.now_ms)
    if delay_s >= 0:
        frame = state.bus.about_job(kinds.ENQUEUE, job.id, delay_s, kinds.TRANSFER)
        if job.retry_s == 0:
            send_when_logged(state, owner, frame)
        else:
            send(state, owner, frame)
    if job.state == QUEUED:
        _tell_queued(state, job, owner)
    delete_copies(state, transfer, holders)


def _delay_s(job: Job, now_ms: i64) -> i64:
    """The seconds after which the new owner must queue the job; -1 if its retry time decides.

    A job that waits for the end of its delay was never queued, or a worker gave it back for later. A job that was
    delayed and that a worker is processing would wait for its delay and its retry time once more. Fractions of a second
    are rounded up.
    """
    if job.state == QUEUED:
        return 0
    if job.is_held and not job.flags & BCAST_QUEUED:
        return job.delay_s  # the new owner queues it first, when its parents are done
    if job.state != ACTIVE or job.requeue_at_ms == 0:
        return -1
    never_queued = not job.flags & (BCAST_QUEUED | DELIVERED)
    if never_queued or job.flags & POSTPONED or (job.flags & DELIVERED and job.delay_s > 0):
        return max((job.requeue_at_ms - now_ms + 999) // 1000, 0)
    return -1


def _tell_queued(state: NodeState, job: Job, owner: Peer) -> None:
    """Tell the other holders that the job waits in a queue (QUEUED)."""
    frame = state.bus.about_job(kinds.QUEUED, job.id)
    for node_id in job.delivered or NOBODY:
        peer = state.view.peers.get(node_id)
        if peer is not None and peer is not owner:
            send(state, peer, frame)


def delete_copies(state: NodeState, transfer: Transfer, owners: list[Peer]) -> None:
    """Send DELJOB to the nodes that were asked, except to `owners` and to former holders."""
    for node_id in transfer.asked:
        peer = state.view.peers.get(node_id)
        if peer is None or peer in owners or (transfer.former is not None and node_id in transfer.former):
            continue
        send(state, peer, state.bus.about_job(kinds.DELJOB, transfer.job.id))


# --- at-most-once jobs ------------------------------------------------------------------------------------------------


def is_deliverable(job: Job) -> bool:
    """Whether an at-most-once job can still be delivered."""
    return job.state == QUEUED or ((job.requeue_at_ms != 0 or job.is_held) and not job.flags & DELIVERED)


def send_unconfirmed(state: NodeState, job: Job, peer: Peer) -> bool:
    """Give a job to a node of the original in a YOURJOBS, which is never confirmed; False if there is no link."""
    link = peer.link
    if link is None or link.closed:
        return False
    packed = pack_plain(job, state.now_ms, state.holders.pack(state.holders.keep((peer.id,))))
    state.lifecycle.journal.move(job)
    state.lifecycle.drop(job)
    send_when_logged(state, peer, state.bus.jobs(kinds.YOURJOBS, [packed]))
    return True
