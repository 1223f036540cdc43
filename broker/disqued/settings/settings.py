"""SETTINGS: changes of settings, or the whole set, from another node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.settings.entries import decode
from disqued.settings.room import settings_of
from disqued.settings.sharing import FEATURE_SETTINGS

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_settings(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Take the entries that win over those of this node. Nothing is taken from a malformed frame."""
    room = settings_of(state)
    try:
        entries = decode(frame.payload)
    except ValueError as error:
        room.peers.refuse(sender, str(error))
        return
    room.receive(sender, entries)


MESSAGE: Final[Message] = Message(
    kinds.SETTINGS,
    "SETTINGS",
    kinds.OF_UNKNOWN,
    "a node whose client changed settings of queues (QCONF), to all with the feature; and a node whose set has "
    "differed for two seconds, to the other one",
    "the receiver keeps of each entry the one with the greater version",
    handle_settings,
    feature=FEATURE_SETTINGS,
)
