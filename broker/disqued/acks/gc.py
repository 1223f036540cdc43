"""Garbage collection of acknowledged jobs: one is forgotten when every node that may have it knows.

Who takes an acknowledgement asks the other holders (SETACK) until all confirmed (GOTACK), then tells them to forget the
job (DELJOB) and forgets it. Rules are those of the Disque state machine (README, "Acknowledged jobs garbage collection
state machine"), where holders are compared by name: the original compares numbers, which is wrong for jobs that moved.
"""

from __future__ import annotations

from disqued.acks.counters import COLLECTIONS, DUMMY_ACKS_COLLECTED
from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import NOBODY, Job
from disqued.core.lifecycle.lifecycle import MAX_COLLECTIONS
from disqued.core.runtime.outbox import send, tell_holders
from disqued.core.runtime.state import NodeState
from disqued.jobmessages import send_setack


def collect(state: NodeState, job: Job) -> None:
    """Forget an acknowledged job if all holders know, ask those that did not confirm otherwise."""
    delivered = job.delivered
    if delivered is None:
        state.lifecycle.drop(job)
        return
    if job.gc_retry < MAX_COLLECTIONS:
        job.gc_retry += 1
    state.counters.add(COLLECTIONS)
    peers = unconfirmed(state, job)
    if not peers:
        finish(state, job)
    elif delivered:
        _ask_holders(state, job, peers)
    else:
        frame = state.bus.about_job(kinds.SETACK, job.id)
        for peer in peers:
            send(state, peer, frame)


def _ask_holders(state: NodeState, job: Job, peers: list[Peer]) -> None:
    """Ask again later whom the network is too slow for: what waits already includes the job itself.

    An original that created a job with one copy lists only itself, until it hears WILLQUEUE from us. It would crash
    when it is told of the acknowledgement and no DELJOB follows within a second, which another holder can prevent.
    """
    asked: list[Peer] = []
    for peer in peers:
        if peer.link is None or peer.link.congested:
            continue
        if job.repl == 1 and peer.features == 0:
            send(state, peer, state.bus.about_job(kinds.WILLQUEUE, job.id))
        asked.append(peer)
    if asked:
        send_setack(state, job, asked)


def unconfirmed(state: NodeState, job: Job) -> list[Peer]:
    """The members that have to confirm before the job is forgotten: its holders, or all if it is not known here."""
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


def note_ack_confirmed(state: NodeState, job: Job, peer: Peer) -> None:
    """Note that another holder knows of the acknowledgement, as this node does."""
    confirmed = job.confirmed
    if confirmed is None:
        confirmed = state.holders.plus(NOBODY, state.view.node_id)
    job.confirmed = state.holders.plus(confirmed, peer.id)


def finish(state: NodeState, job: Job) -> None:
    """All know: have the others forget the job, and forget it."""
    delivered = job.delivered
    if not delivered:
        state.counters.add(DUMMY_ACKS_COLLECTED)
    elif len(delivered) > 1:
        tell_holders(state, job, state.bus.about_job(kinds.DELJOB, job.id))
    state.lifecycle.drop(job)
