"""Functions that handlers of messages about one job share: finding the job, its holders, its expiry, its end.

Lists of holders name nodes by ID. Nodes that were forgotten since do not count, wherever a list is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.fates.ended import pack_ended
from disqued.core.fates.fate import DONE, NOTHING
from disqued.core.jobs.codec import pack_for_bus, pack_plain
from disqued.core.jobs.job import ACKED, INCOMPLETE, NOBODY, NOT_DONE, NodeIds
from disqued.core.jobs.jobid import is_job_id
from disqued.core.runtime.outbox import send, send_copy, send_when_logged, tell_end

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.fates.fate import Fate
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState


def job_of(state: NodeState, frame: Frame) -> Job | None:
    """The job that a message is about; None if this node does not have it, or if the message has no valid job ID."""
    job_id = frame.job_id
    return state.lifecycle.table.get(job_id) if is_job_id(job_id) else None


def members_of(state: NodeState, node_ids: NodeIds) -> NodeIds:
    """The nodes of a list that were not forgotten; the same object if none was."""
    return state.holders.members(node_ids, state.view)


def note_holder(state: NodeState, job: Job, peer: Peer) -> None:
    """Add another node to the holders of a job: it sent a message that only holders send."""
    delivered = job.delivered
    if delivered is None:
        delivered = state.holders.plus(NOBODY, state.view.node_id)
    job.delivered = state.holders.plus(delivered, peer.id)
    table = state.lifecycle.table
    if table.settling:
        table.note_seen(job, (peer.id,))


def job_held_with(state: NodeState, peer: Peer, frame: Frame) -> Job | None:
    """The job that a message of another holder is about; None if this node does not have it, or if it is done.

    The sender is added to its holders. If the job is done, the sender gets a SETACK instead.
    """
    job = job_of(state, frame)
    if job is None:
        return None
    if job.state == ACKED:
        send_setack(state, job, peer)
        return None
    note_holder(state, job, peer)
    return job


def hash_of_holders(state: NodeState, job: Job) -> i64:
    """What QUEUED says about the list of holders, so that a node with another list answers with it; 0 for nothing.

    Members that were forgotten do not count. A list that may be incomplete is only a guess.
    """
    delivered = job.delivered
    if delivered is None or job.flags & INCOMPLETE:
        return 0
    return state.holders.hash_of(members_of(state, delivered))


def share_holders(state: NodeState, job: Job, node_ids: NodeIds) -> None:
    """Send the list of holders to nodes that may have the job and not know all of them.

    Nothing is sent while the list may name nodes that have lost the job, nor on a congested link: the next QUEUED that
    one of these nodes sends shows again that it has another list.
    """
    delivered = job.delivered
    if delivered is not None and not job.flags & INCOMPLETE and not state.lifecycle.table.settling:
        _send_list(state, job, delivered, node_ids)


def introduce(state: NodeState, job: Job, peer: Peer) -> None:
    """Send the other nodes that may have the job a list with this node and a node that certainly has it."""
    delivered = job.delivered
    if delivered is not None:
        listed = state.holders.keep((state.view.node_id, peer.id))
        _send_list(state, job, listed, state.holders.without(delivered, (peer.id,)))


def _send_list(state: NodeState, job: Job, listed: NodeIds, node_ids: NodeIds) -> None:
    """Send a list of holders to nodes that may have the job (REPLJOB with LIST_ONLY)."""
    if job.retry_s == 0:
        return
    peers: list[Peer] = []
    for node_id in node_ids:
        peer = state.view.peers.get(node_id)
        if peer is None or peer.link is None or peer.link.congested or not peer.features & kinds.FEATURE_REPAIR:
            continue
        peers.append(peer)
    if peers:
        send_repljob(state, job, peers, state.holders.pack(listed), kinds.LIST_ONLY)


def take_expiry(state: NodeState, job: Job, peer: Peer) -> None:
    """Convert the remaining seconds of a job from another node to its expiry by this node's clock.

    Nodes send one second more than remains, because the original needs it. Between our nodes it is subtracted again;
    otherwise a job would live a second longer after each transfer.
    """
    left_s = job.expire_at_s
    if peer.features != 0 and left_s > 0:
        left_s -= 1
    job.expire_at_s = left_s + state.now_ms // 1000


def send_repljob(
    state: NodeState, job: Job, peers: list[Peer], listed: bytes, message_flags: i64, *, joined: bool = False
) -> None:
    """Send a job with this list of holders to nodes (REPLJOB), with its attributes to those that understand them.

    A job that waits for its parents is not sent to other nodes.
    `joined`: in one message with the jobs before, to nodes with the feature.
    """
    whole = b""
    plain = b""
    for peer in peers:
        if job.is_whole_with(peer.features):
            if not whole:
                whole = state.bus.jobs(kinds.REPLJOB, [pack_for_bus(job, state.now_ms, listed)], message_flags)
            frame = whole
        elif job.is_held:
            continue
        else:
            if not plain:
                plain = state.bus.jobs(kinds.REPLJOB, [pack_plain(job, state.now_ms, listed)], message_flags)
            frame = plain
        if joined:
            send_copy(state, [peer], frame)
        else:
            send(state, peer, frame)


def fate_to_send(state: NodeState, job: Job) -> Fate | None:
    """What the other holders of an acknowledged job must learn about its end; None if it merely is done."""
    record = state.records.get(job.id)
    if record is None:
        return None if job.is_known_as_done else NOTHING
    fate = record.fate
    return fate if fate.outcome != DONE or fate.result is not None or fate.claim != 0 else None


def send_setrec(state: NodeState, job_id: bytes, fate: Fate, peer: Peer, may_have: i64) -> None:
    """Tell a node that a job has ended, and how (SETREC); `may_have` as in SETACK."""
    record = state.records.get(job_id)
    keep_ms: i64 = 0 if record is None else record.until_ms - state.now_ms
    if state.write_refusal:  # as `tell_end` does
        send(state, peer, state.bus.other(kinds.SETREC, pack_ended(job_id, fate, 0, keep_ms)))
    else:
        send_when_logged(state, peer, state.bus.other(kinds.SETREC, pack_ended(job_id, fate, may_have, keep_ms)))


def send_setack(state: NodeState, job: Job, peer: Peer) -> None:
    """Tell a node that the job is done and how many nodes may hold it (SETACK).

    Nodes of the original never shorten their lists of holders. If they got less than the full length they would
    conclude that they know more holders, and would not confirm. So they get the full length.
    """
    delivered = job.delivered
    assert delivered is not None
    if (state.records.count > 0 or job.requeue_at_ms == NOT_DONE) and peer.features & kinds.FEATURE_FATES:
        fate = fate_to_send(state, job)
        if fate is not None:
            send_setrec(state, job.id, fate, peer, len(members_of(state, delivered)))
            return
    may_have: i64 = len(delivered if peer.features == 0 else members_of(state, delivered))
    tell_end(state, peer, kinds.SETACK, job.id, may_have)
