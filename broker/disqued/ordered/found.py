"""FOUND: the steps in founding the catalog (`founding`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.ordered.counters import MESSAGES_REFUSED
from disqued.ordered.founding import BEGIN
from disqued.ordered.payload import MalformedPayloadError, unpack_founding
from disqued.ordered.room import ordered_of
from disqued.raft.members import Members

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_found(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Take one step."""
    try:
        step = unpack_founding(frame.payload)
        members = Members.decode(step.members) if step.step == BEGIN else None
    except (MalformedPayloadError, ValueError):
        state.counters.add(MESSAGES_REFUSED)
        return
    ordered_of(state).foundation.step(sender.id, step, members)


MESSAGE: Final[Message] = Message(
    kinds.FOUND,
    "FOUND",
    kinds.OF_UNKNOWN,
    "the node of CLUSTER ORDERED INIT, to all members; replicas of group 0, to each other while there is no leader; "
    "and the answers",
    "the receiver opens its log, or begins its replica of group 0",
    handle_found,
    feature=kinds.FEATURE_ORDERED,
)
