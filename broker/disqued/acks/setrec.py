"""SETREC: another node says that a job has ended, and how.

Between nodes with the feature it takes the place of SETACK for a job that has a result, that was moved, or of which a
node only knows that it ended.
"""

from __future__ import annotations

from typing import Final

from disqued.acks.setack import acknowledge
from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.fates.ended import unpack_ended
from disqued.core.fates.fate import WAITING, CorruptFate
from disqued.core.runtime.message import Message
from disqued.core.runtime.state import NodeState
from disqued.jobmessages import send_setrec


def handle_setrec(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Acknowledge the job, and keep the record. A malformed one is ignored: the sender asks again."""
    try:
        ended = unpack_ended(frame.payload)
    except CorruptFate:
        return
    fate = ended.fate
    if fate.outcome == WAITING:
        return
    state.watches.keeper.receive(ended.job_id, fate, ended.keep_ms)
    acknowledge(state, peer, ended.job_id, ended.may_have, fate)
    record = state.records.get(ended.job_id)
    if record is not None and 0 < fate.claim < record.fate.claim:  # the sender must not keep the result
        send_setrec(state, ended.job_id, record.fate, peer, 0)


MESSAGE: Final[Message] = Message(
    kinds.SETREC,
    "SETREC",
    kinds.OF_UNKNOWN,
    "as SETACK, to nodes with the feature, if the job has a result, was moved, or ended in a way that is not known",
    "as SETACK; the receiver keeps the record of the job",
    handle_setrec,
    feature=kinds.FEATURE_FATES,
)
