"""QUEUENAME: another node has jobs of a queue that matches a pattern for which clients wait here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.patterns.room import FEATURE_PATTERNS, patterns_of

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_queuename(state: NodeState, _sender: Peer, frame: Frame) -> None:
    """Ask for jobs of the queue while clients wait for it."""
    patterns_of(state).hear_name(frame.queue)


MESSAGE: Final[Message] = Message(
    kinds.QUEUENAME,
    "QUEUENAME",
    kinds.OF_QUEUE,
    "a node with jobs of a queue that no client takes there, to the nodes whose patterns match it",
    "the receiver asks for jobs with NEEDJOBS while a client waits for such a pattern",
    handle_queuename,
    feature=FEATURE_PATTERNS,
)
