"""GOTACK: a node confirms that it knows a job to be done, and says whether it has the job. GOTACKS: of many jobs."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.acks.gc import finish, held_only_with, note_ack_confirmed, unconfirmed
from disqued.bus import kinds
from disqued.bus.frame import LISTED_BYTES, Frame
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import ACKED
from disqued.core.runtime.message import Message
from disqued.core.runtime.state import NodeState
from disqued.jobmessages import note_holder


def handle_gotack(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Note the confirmation, and forget the job if it was the last."""
    _confirm(state, peer, frame.job_id, frame.aux)


def handle_gotacks(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Note the confirmations, and forget the jobs for which they were the last."""
    at = frame.jobs_at
    while at < frame.end:
        _confirm(state, peer, frame.listed(at), frame.listed_aux(at))
        at += LISTED_BYTES


def _confirm(state: NodeState, peer: Peer, job_id: bytes, answer: i64) -> None:
    """Note a confirmation; `answer` is UNKNOWN, KNOWN or DROPPED."""
    job = state.lifecycle.table.get(job_id)
    if job is None or job.state != ACKED:
        return
    delivered = job.delivered
    if delivered is None:
        return
    known = answer != kinds.UNKNOWN
    if known and state.lifecycle.watched and job_id in state.lifecycle.watched:
        record = state.records.get(job_id)
        if record is None or record.fate.result is None or not peer.features & kinds.FEATURE_FATES:
            state.watches.confirmed.append((job_id, peer.id))  # others say which result they know
    if answer == kinds.DROPPED and held_only_with(state, job, peer):
        state.lifecycle.drop(job)
        return
    if not delivered:
        if known:
            finish(state, job)  # the sender has the job and collects it from now on
            return
    elif known:
        note_holder(state, job, peer)
    elif peer.id not in delivered:
        return
    note_ack_confirmed(state, job, peer)
    if not unconfirmed(state, job):
        finish(state, job)


MESSAGE: Final[Message] = Message(
    kinds.GOTACK,
    "GOTACK",
    kinds.OF_JOB_ID,
    "the receiver of SETACK, to its sender; the number is 1 if it knows the job, 2 if it dropped it because no third "
    "node has it (only to nodes with SETACKS)",
    "counts for the garbage collection of the job",
    handle_gotack,
)

LIST: Final[Message] = Message(
    kinds.GOTACKS,
    "GOTACKS",
    kinds.OF_JOB_IDS,
    "as GOTACK, for the jobs of one turn of the event loop, to nodes with the feature",
    "as GOTACK for each job",
    handle_gotacks,
    feature=kinds.FEATURE_LISTS,
)
