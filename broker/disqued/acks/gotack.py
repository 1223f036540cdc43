"""GOTACK: a node confirms that it knows a job to be done, and says whether it has the job."""

from __future__ import annotations

from typing import Final

from disqued.acks.gc import finish, note_ack_confirmed, unconfirmed
from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import ACKED
from disqued.core.runtime.message import Message
from disqued.core.runtime.state import NodeState
from disqued.jobmessages import job_of, note_holder


def handle_gotack(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Note the confirmation, and forget the job if it was the last. `aux` is 1 when the sender has the job."""
    job = job_of(state, frame)
    if job is None or job.state != ACKED:
        return
    delivered = job.delivered
    if delivered is None:
        return
    known = frame.aux != 0
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
    "the receiver of SETACK, to its sender; the number is 1 if it knows the job",
    "counts for the garbage collection of the job",
    handle_gotack,
)
