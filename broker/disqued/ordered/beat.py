"""BEAT: a node that knows the catalog is there, with this log and this version of the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.ordered.counters import MESSAGES_REFUSED
from disqued.ordered.payload import MalformedPayloadError, unpack_beat
from disqued.ordered.room import ordered_of

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_beat(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Note that the node is there. Ask it for its catalog if that is newer."""
    try:
        beat = unpack_beat(frame.payload)
    except MalformedPayloadError:
        state.counters.add(MESSAGES_REFUSED)
        return
    ordered_of(state).heard(sender, beat)


MESSAGE: Final[Message] = Message(
    kinds.BEAT,
    "BEAT",
    kinds.OF_UNKNOWN,
    "a node that knows the catalog, to all others, every 100 ms",
    "the groups of the sender have their leaders and followers; a newer catalog is asked for",
    handle_beat,
    feature=kinds.FEATURE_ORDERED,
)
