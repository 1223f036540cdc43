"""COUNTED: how many jobs of a queue wait on another node, or were deleted there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.counts.collecting import FEATURE_COUNTS
from disqued.counts.payload import MalformedError, unpack_answer
from disqued.counts.room import counts_of

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_counted(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Add the figures. An answer that is malformed, late or not asked for is ignored."""
    try:
        number, figures = unpack_answer(frame.payload)
    except MalformedError:
        return
    counts_of(state).collections.take(sender, number, figures)


MESSAGE: Final[Message] = Message(
    kinds.COUNTED,
    "COUNTED",
    kinds.OF_UNKNOWN,
    "the receiver of COUNTASK, to its sender",
    "the receiver adds the figures to those of the other nodes",
    handle_counted,
    feature=FEATURE_COUNTS,
)
