"""JOBASK: another node asks what becomes of jobs, and wants to be notified of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.fates.payload import MalformedError, unpack_questions
from disqued.fates.room import fates_of

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_jobask(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Answer, and remember who asked. A malformed question has no answer."""
    try:
        job_ids = unpack_questions(frame.payload)
    except MalformedError:
        return
    fates_of(state).answer(sender, job_ids)


MESSAGE: Final[Message] = Message(
    kinds.JOBASK,
    "JOBASK",
    kinds.OF_UNKNOWN,
    "a node on which somebody waits for the end of jobs, to all nodes with the feature, every 30 s",
    "JOBTOLD, at once and for 40 s whenever the receiver learns more",
    handle_jobask,
    feature=kinds.FEATURE_FATES,
)
