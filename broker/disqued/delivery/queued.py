"""QUEUED: a node tells the other holders of a job that it queued it, so that only one of them does."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.frame import NODE_ID_BYTES, Frame
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import BY_TIMER, INCOMPLETE, MAX_COUNTER, QUEUED, Job
from disqued.core.runtime.claiming import end_claim
from disqued.core.runtime.message import Message
from disqued.core.runtime.outbox import send, tell_holders
from disqued.core.runtime.state import NodeState
from disqued.delivery.counters import DUPLICATE_ENQUEUES_DROPPED
from disqued.jobmessages import hash_of_holders, introduce, job_held_with, share_holders

FLAGS: Final = (0, kinds.INCR_DELIVERIES, kinds.INCR_NACKS, 0)
"""By what the queueing counts as: SILENT, COUNT_DELIVERY, COUNT_NACK, UNCOUNTED."""
_FAILED: Final = kinds.INCR_DELIVERIES | kinds.INCR_NACKS
TIE_MS: Final = 1000
"""Two nodes that requeue a job within this time, and that learn of each other only after the first one delivered it."""
_RANDOM_AT: Final = 11
_RANDOM_CHARACTERS: Final = 24
"""The random part of a job ID."""


def announce(state: NodeState, job: Job, counting: i64) -> None:
    """Tell the other holders that the job is queued here, and what for."""
    tell_queued(state, job, FLAGS[counting])


def tell_queued(state: NodeState, job: Job, message_flags: i64 = 0) -> None:
    """Tell the other holders that the job is queued here; nodes of the original get what they send themselves."""
    plain = state.bus.about_job(kinds.QUEUED, job.id, 0, message_flags)
    hashed = state.bus.about_job(kinds.QUEUED, job.id, hash_of_holders(state, job), message_flags)
    tell_holders(state, job, plain, hashed)


def precedes(job_id: bytes, one: bytes, other: bytes) -> bool:
    """Whether node `one` keeps a job in its queue when `other` has it queued too.

    IDs are compared after a XOR with the random part of the job's ID, so that no node loses all ties (Disque
    `compareNodeIDsByJob`).
    """
    for at in range(NODE_ID_BYTES):
        mask: i64 = job_id[_RANDOM_AT + at % _RANDOM_CHARACTERS]
        left: i64 = one[at]
        right: i64 = other[at]
        if left != right:
            return (left ^ mask) > (right ^ mask)
    return False


def handle_queued(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Another holder queued the job: wait for the retry time from now on, and give way if it goes first.

    If both nodes queued it at once and a worker took it here before this message arrived, this node answers WORKING.
    The other node then removes the job from its queue, so it is not delivered twice. A NACK means to deliver it again.
    A sender that has no precedence is told that the job is queued here: it may not know this node, or may have queued
    the job although it knew. A sender with another list of holders gets the list of this node. If that may be
    incomplete, the other holders learn of the sender, in case one of them has just said that it queued the job, too.
    """
    job = job_held_with(state, peer, frame)
    if job is None:
        return
    lifecycle = state.lifecycle
    if job.is_held:
        lifecycle.free_elsewhere(job)
    flags = frame.message_flags
    if lifecycle.is_leased(job, state.now_ms) and not flags & kinds.INCR_NACKS and _was_just_taken(state, job):
        tell_holders(state, job, state.bus.about_job(kinds.WORKING, job.id))
    else:
        lifecycle.end_lease(job)
        end_claim(state, job, peer)
    if job.state == QUEUED:
        if precedes(job.id, peer.id, state.view.node_id):
            lifecycle.dequeue(job)
            state.counters.add(DUPLICATE_ENQUEUES_DROPPED)
        elif peer.features & kinds.FEATURE_REPAIR:
            send(state, peer, state.bus.about_job(kinds.QUEUED, job.id, hash_of_holders(state, job)))
        elif job.is_named:
            send(state, peer, state.bus.about_job(kinds.QUEUED, job.id))
    holders_there: i64 = frame.aux
    is_again = _age_ms(state, job) < TIE_MS
    lifecycle.postpone(job, state.now_ms)
    if flags & kinds.INCR_NACKS and job.nacks < MAX_COUNTER:
        job.nacks += 1
    if flags & kinds.INCR_DELIVERIES and job.additional_deliveries < MAX_COUNTER:
        job.additional_deliveries += 1
    if holders_there != 0 and holders_there != hash_of_holders(state, job):
        if not job.flags & INCOMPLETE:
            share_holders(state, job, (peer.id,))
        elif is_again:
            introduce(state, job, peer)
    if flags & _FAILED and not peer.features & kinds.FEATURE_ATTRIBUTES:
        state.events.failed_elsewhere(job)


def _was_just_taken(state: NodeState, job: Job) -> bool:
    """Whether this node queued the job again and a worker took it in the moment in which the other one queued it."""
    if not job.flags & BY_TIMER:
        return False
    return _age_ms(state, job) < TIE_MS


def _age_ms(state: NodeState, job: Job) -> i64:
    """How long ago the retry time of a job began."""
    return state.now_ms + job.retry_s * 1000 - job.requeue_at_ms


MESSAGE: Final[Message] = Message(
    kinds.QUEUED,
    "QUEUED",
    kinds.OF_JOB_ID,
    "a node that queued a job, to the other holders; the number is a hash of the holders that it knows, 0 for none",
    "the others do not queue it; if two queued it, only one keeps it queued; REPLJOB if they know other holders",
    handle_queued,
)
