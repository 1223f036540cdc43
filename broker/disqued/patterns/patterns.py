"""PATTERNS: the patterns of queues that clients of another node wait for, all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.patterns.payload import MalformedError, unpack
from disqued.patterns.room import FEATURE_PATTERNS, patterns_of

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_patterns(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Note the patterns, and name matching queues with jobs."""
    try:
        texts = unpack(frame.payload)
    except MalformedError as error:
        who = sender.id.decode("ascii", "replace")
        state.host.log("warning", f"Ignoring a PATTERNS from {who}: {error}")
        return
    patterns_of(state).hear(sender, texts)


MESSAGE: Final[Message] = Message(
    kinds.PATTERNS,
    "PATTERNS",
    kinds.OF_UNKNOWN,
    "a node whose clients wait for patterns of queues, to nodes with the feature: when the set changes, and every ten "
    "seconds",
    "the receiver replaces the patterns of the sender; QUEUENAME for matching queues with jobs",
    handle_patterns,
    feature=FEATURE_PATTERNS,
)
