"""RAFT: messages between the replicas of groups, all those of one turn for one node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.ordered.counters import MESSAGES_REFUSED
from disqued.ordered.payload import MalformedPayloadError, unpack_messages
from disqued.ordered.room import ordered_of
from disqued.raft.codec import MalformedError, decode

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_raft(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Pass the messages to the replicas here. Those of another node or for another log are dropped."""
    room = ordered_of(state)
    try:
        for from_log, to_log, data in unpack_messages(frame.payload):
            room.presence.heard(sender.id, from_log)
            for group, messages in decode(data, sender.id + from_log, room.exchange.node_id + to_log):
                room.hosting.take_messages(group, messages)
    except (MalformedPayloadError, MalformedError):
        state.counters.add(MESSAGES_REFUSED)


MESSAGE: Final[Message] = Message(
    kinds.RAFT,
    "RAFT",
    kinds.OF_UNKNOWN,
    "a node with replicas of groups, to another one, whenever the groups say so; nothing while they are idle",
    "each replica takes its messages (`disqued.raft`)",
    handle_raft,
    feature=kinds.FEATURE_ORDERED,
)
