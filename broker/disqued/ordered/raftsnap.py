"""RAFTSNAP: snapshots for followers whose log is too far behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.ordered.counters import MESSAGES_REFUSED
from disqued.ordered.payload import MalformedPayloadError, unpack_messages
from disqued.ordered.room import ordered_of
from disqued.ordered.snapshotpayload import OFFER, unpack_parts
from disqued.raft.codec import MalformedError, decode
from disqued.raft.message import Message as RaftMessage

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_raftsnap(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Pass the parts to the replicas here."""
    room = ordered_of(state)
    try:
        for part in unpack_parts(frame.payload):
            messages: list[RaftMessage] = []
            if part.what == OFFER:
                for from_log, to_log, data in unpack_messages(part.data):
                    for _, found in decode(data, sender.id + from_log, room.exchange.node_id + to_log):
                        messages += found
                if not messages or messages[0].to != room.hosting.identity:
                    continue
            room.hosting.take_part(sender.id, part, messages)
    except (MalformedPayloadError, MalformedError):
        state.counters.add(MESSAGES_REFUSED)


MESSAGE: Final[Message] = Message(
    kinds.RAFTSNAP,
    "RAFTSNAP",
    kinds.OF_UNKNOWN,
    "the node that leads a group, to one whose replica lacks entries that the leader has no more; and its requests for "
    "the parts",
    "the receiver asks for one part after the other, then takes the snapshot in place of its log",
    handle_raftsnap,
    feature=kinds.FEATURE_ORDERED,
)
