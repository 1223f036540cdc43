"""COUNTASK: another node asks how many jobs of a queue wait on this one, or were deleted by a purge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.counts.collecting import FEATURE_COUNTS
from disqued.counts.payload import MalformedError, unpack_question
from disqued.counts.room import counts_of

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_countask(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Count and answer. A question that is malformed, or of a kind that this release does not know, has no answer."""
    try:
        question = unpack_question(frame.payload)
    except MalformedError:
        return
    counts_of(state).answer(sender, question)


MESSAGE: Final[Message] = Message(
    kinds.COUNTASK,
    "COUNTASK",
    kinds.OF_UNKNOWN,
    "a node whose client counts or deletes the jobs of a queue (QCOUNT, QPURGE), to all nodes with the feature",
    "COUNTED",
    handle_countask,
    feature=FEATURE_COUNTS,
)
