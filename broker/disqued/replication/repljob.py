"""REPLJOB: another node asks this one to keep copies of its jobs, or sends longer lists of holders."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.fates.fate import DONE, UNKNOWN
from disqued.core.jobs.codec import CorruptJob, unpack
from disqued.core.jobs.job import ACKED, NOBODY, QUEUED, WAIT_REPL, Job, NodeIds
from disqued.core.runtime.counters import COPIES_REFUSED
from disqued.core.runtime.outbox import confirm_copy, send
from disqued.core.runtime.state import NodeState
from disqued.jobmessages import members_of, send_setack, share_holders, take_expiry
from disqued.placing.otherhomes import ask_other_homes
from disqued.placing.rivals import answer_about
from disqued.replication.counters import COPIES_KEPT


def handle_repljob(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Keep the jobs; stop at one that cannot be read. A message of a node without the feature has one job."""
    if frame.jobs_count != 1 and not peer.features & kinds.FEATURE_COPIES:
        return
    data = frame.data
    end = frame.end
    at = frame.jobs_at
    left = frame.jobs_count
    message_flags = frame.message_flags
    while left > 0 and at < end:
        try:
            unpacked = unpack(data, at, end)
        except CorruptJob as error:
            state.host.log("warning", f"Ignoring a REPLJOB from {peer.id.decode('ascii', 'replace')}: {error}")
            return
        at = unpacked.end
        left -= 1
        _take(state, peer, unpacked.job, unpacked.holders, message_flags)


def _take(state: NodeState, peer: Peer, job: Job, sent_holders: bytes, message_flags: i64) -> None:
    """Keep a job and confirm it (GOTJOB) unless NOREPLY is set. A refusal has no answer: the sender asks other nodes.

    A job that this node has keeps its state; its list of holders grows, and it gets attributes. If the node only has
    its acknowledgement (a dummy), the job replaces it and is acknowledged. So is a job that was lately said to be done.
    With LIST_ONLY, a job that this node does not have is not kept.
    """
    holders = state.holders
    listed = holders.plus(members_of(state, holders.unpack(sent_holders)), state.view.node_id)
    known = state.lifecycle.table.get(job.id)
    had: i64 = 0
    if known is not None and not known.is_dummy:
        delivered = known.delivered
        if delivered is None:
            delivered = holders.keep((state.view.node_id,))
        elif known.state == WAIT_REPL and state.view.node_id not in delivered:
            return  # this node adds it too, and will not keep it
        known.delivered = holders.union(delivered, listed)
        if state.lifecycle.table.settling:
            state.lifecycle.table.note_seen(known, holders.without(listed, delivered))
        state.lifecycle.merge_attributes(known, job.extra)
        _introduce(state, known, delivered, listed)
        had = answer_about(known, job, state.now_ms)
        job = known
    elif message_flags & kinds.LIST_ONLY == kinds.LIST_ONLY:
        return
    elif not _keep(state, peer, job, listed, known, message_flags):
        state.counters.add(COPIES_REFUSED)
        return
    if job.state == ACKED and job.is_named:
        send_setack(state, job, peer)  # the sender adds it once more and must not have it delivered
    elif not message_flags & kinds.NOREPLY:
        confirm_copy(state, peer, job.id, had)
        if message_flags & kinds.REPAIRED:
            _tell_holders(state, peer, job)


def _introduce(state: NodeState, job: Job, known: NodeIds, listed: NodeIds) -> None:
    """Have holders learn of each other, after the list of those that were `known` grew by those that a node listed.

    If this node knows others than the sender, all get the whole list. If it has the job queued, it tells the new ones:
    one of them may have it queued as well. Nodes of the original get neither.
    """
    whole = job.delivered
    assert whole is not None
    if job.state == ACKED:
        return
    if len(members_of(state, whole)) > len(listed):
        share_holders(state, job, whole)
    if job.state == QUEUED and whole is not known:
        frame = state.bus.about_job(kinds.WILLQUEUE, job.id)
        for node_id in state.holders.without(listed, known):
            peer = state.view.peers.get(node_id)
            if peer is not None and peer.features & kinds.FEATURE_REPAIR:
                send(state, peer, frame)


def _tell_holders(state: NodeState, sender: Peer, job: Job) -> None:
    """Tell the holders other than the sender that this node has a copy too, so that none of them makes another one."""
    for node_id in job.delivered or NOBODY:
        peer = state.view.peers.get(node_id)
        if peer is not None and peer is not sender and peer.features & kinds.FEATURE_REPAIR:
            confirm_copy(state, peer, job.id)


def _keep(state: NodeState, peer: Peer, job: Job, listed: NodeIds, dummy: Job | None, message_flags: i64) -> bool:
    """Register the copy; False when this node takes no copies now.

    It takes none while it leaves, is short of memory or has a failing disk, or while the queue is paused for input.
    The pause only applies to new jobs, not to those that a leaving node transfers (TRANSFER).
    """
    lifecycle = state.lifecycle
    memory = lifecycle.memory
    if state.view.leaving or state.write_refusal or memory.level() > 0 or not memory.has_room_for(len(job.body)):
        return False
    if not message_flags & kinds.TRANSFER and lifecycle.queues.takes_no_input(job.queue):
        return False
    queue = lifecycle.queues.get(job.queue)
    if queue is not None:
        job.queue = queue.name
    now_ms = state.now_ms
    is_done = dummy is not None or state.events.is_done(job.id)
    if dummy is not None:
        lifecycle.drop(dummy)
    job.delivered = listed
    take_expiry(state, job, peer)
    lifecycle.keep_copy(job, now_ms)
    state.counters.add(COPIES_KEPT)
    if is_done:
        known = dummy is not None and dummy.is_known_as_done
        lifecycle.acknowledge(job, now_ms, DONE if known else UNKNOWN)
    elif job.is_named:
        ask_other_homes(state, job)
    return True
