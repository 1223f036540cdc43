"""JOBTOLD: another node says what became of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.fates.payload import MalformedError, unpack_answers

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_jobtold(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Tell those who watch the jobs. Answers that are malformed, or that nobody waits for, are ignored."""
    try:
        answers = unpack_answers(frame.payload)
    except MalformedError:
        return
    for job_id, fate in answers:
        state.watches.tell(job_id, fate, sender.id)


MESSAGE: Final[Message] = Message(
    kinds.JOBTOLD,
    "JOBTOLD",
    kinds.OF_UNKNOWN,
    "the receiver of JOBASK, to its sender",
    "the receiver tells those who wait for the ends of the jobs",
    handle_jobtold,
    feature=kinds.FEATURE_FATES,
)
