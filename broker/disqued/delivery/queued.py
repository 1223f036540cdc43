"""QUEUED: a node tells the other holders of a job that it queued it, so that only one of them does."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.frame import NODE_ID_BYTES, Frame
from disqued.core.holding import job_of, note_holder, send_setack
from disqued.core.job import ACKED, MAX_COUNTER, QUEUED, Job
from disqued.core.message import Message
from disqued.core.outbox import tell_holders
from disqued.core.peer import Peer
from disqued.core.state import NodeState

_FLAGS: Final = (0, kinds.INCR_DELIVERIES, kinds.INCR_NACKS)
"""By what the queueing counts as: SILENT, COUNT_DELIVERY, COUNT_NACK."""
_RANDOM_AT: Final = 11
_RANDOM_CHARACTERS: Final = 24
"""The random part of a job ID."""


def announce(state: NodeState, job: Job, counting: i64) -> None:
    """Tell the other holders that the job is queued here, and what for."""
    flags = _FLAGS[counting]
    tell_holders(state, job, state.bus.about_job(kinds.QUEUED, job.id, 0, flags))


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


def queued(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Another holder queued the job: wait for the retry time from now on, and give way if it goes first."""
    job = job_of(state, frame)
    if job is None:
        return
    if job.state == ACKED:
        send_setack(state, job, [peer])
        return
    note_holder(state, job, peer)
    if job.state == QUEUED and precedes(job.id, peer.id, state.view.node_id):
        state.lifecycle.dequeue(job)
        state.stats.queued_ties_lost += 1
    state.lifecycle.postpone(job, state.now_ms)
    flags = frame.message_flags
    if flags & kinds.INCR_NACKS and job.nacks < MAX_COUNTER:
        job.nacks += 1
    if flags & kinds.INCR_DELIVERIES and job.additional_deliveries < MAX_COUNTER:
        job.additional_deliveries += 1


MESSAGE: Final[Message] = Message(kinds.QUEUED, queued)
