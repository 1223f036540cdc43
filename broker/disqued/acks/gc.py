"""Garbage collection of acknowledged jobs: a job is dropped when every node that may have it knows that it is done.

The node that takes an acknowledgement asks the other holders (SETACK) until all have confirmed (GOTACK), then tells
them to drop the job (DELJOB) and drops it itself. The rules are those of the Disque state machine (README,
"Acknowledged jobs garbage collection state machine"), except that holders are compared by ID: the original compares
their number, which is wrong for jobs that moved.
"""

from __future__ import annotations

from disqued.acks.counters import COLLECTIONS, DUMMY_ACKS_COLLECTED
from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import INCOMPLETE, NOBODY, Job
from disqued.core.runtime.outbox import delete_at_holders, send, tell_end
from disqued.core.runtime.state import NodeState
from disqued.jobmessages import send_setack, send_setrec


def collect(state: NodeState, job: Job) -> None:
    """Drop an acknowledged job if all holders know; otherwise ask those that have not confirmed."""
    if job.flags & INCOMPLETE:
        state.holders.complete(job, state.view)
    delivered = job.delivered
    if delivered is None:
        state.lifecycle.drop(job)
        return
    if job.gc_retry == 0:
        job.gc_retry = 1  # this node collects the job
    state.counters.add(COLLECTIONS)
    peers = unconfirmed(state, job)
    if not peers:
        finish(state, job)
    elif delivered:
        _ask_holders(state, job, peers)
    else:
        record = state.records.get(job.id) if state.records.count > 0 else None
        for peer in peers:
            if record is not None and peer.features & kinds.FEATURE_FATES:
                send_setrec(state, job.id, record.fate, peer, 0)
            else:
                tell_end(state, peer, kinds.SETACK, job.id)


def _ask_holders(state: NodeState, job: Job, peers: list[Peer]) -> None:
    """Ask the holders, except those with a congested link, which are asked when it has room again (`AcksRoom`).

    A node of the original that created a job with one copy lists only itself until it receives WILLQUEUE. It would
    crash if it received SETACK and no DELJOB within a second, and another holder can prevent that DELJOB.
    """
    for peer in peers:
        link = peer.link
        if link is None:
            continue
        if link.congested:
            link.acks_skipped = True
            continue
        if job.repl == 1 and peer.features == 0:
            send(state, peer, state.bus.about_job(kinds.WILLQUEUE, job.id))
        send_setack(state, job, peer)


def unconfirmed(state: NodeState, job: Job) -> list[Peer]:
    """The members that must confirm before the job is dropped: its holders, or all members if it is not known here."""
    delivered = job.delivered
    confirmed = job.confirmed
    if confirmed is None:
        confirmed = NOBODY
    peers = state.view.peers
    if not delivered:
        return [peer for peer in peers.values() if not peer.in_handshake and peer.id not in confirmed]
    missing: list[Peer] = []
    for node_id in delivered:
        if node_id not in confirmed:
            holder = peers.get(node_id)
            if holder is not None:
                missing.append(holder)
    return missing


def held_only_with(state: NodeState, job: Job, peer: Peer) -> bool:
    """Whether this node lists the peer as a holder of the job, and no third member of the cluster."""
    delivered = job.delivered
    if delivered is None:
        return False
    view = state.view
    listed = False
    for node_id in delivered:
        if node_id == peer.id:
            listed = True
        elif node_id != view.node_id and view.knows(node_id):
            return False
    return listed


def note_ack_confirmed(state: NodeState, job: Job, peer: Peer) -> None:
    """Note that another holder knows of the acknowledgement, as this node does."""
    confirmed = job.confirmed
    if confirmed is None:
        confirmed = state.holders.plus(NOBODY, state.view.node_id)
    job.confirmed = state.holders.plus(confirmed, peer.id)


def finish(state: NodeState, job: Job) -> None:
    """Drop the job here and on the other holders: all know that it is done."""
    delivered = job.delivered
    if not delivered:
        state.counters.add(DUMMY_ACKS_COLLECTED)
    elif len(delivered) > 1:
        delete_at_holders(state, job)
    state.lifecycle.drop(job)
