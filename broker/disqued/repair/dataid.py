"""DATAID: a node announces which jobs it may have (its data ID), and its free memory, which decides who gets copies."""

from __future__ import annotations

from typing import Final

from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.runtime.message import Message
from disqued.core.runtime.state import NodeState
from disqued.repair.dataidfile import DATA_ID_BYTES
from disqued.repair.room import MOST_FREE, repair_of

_PAYLOAD_BYTES: Final = DATA_ID_BYTES + 8


def handle_dataid(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Take in what a node says. Anything but a data ID and a possible size is ignored."""
    payload = frame.payload
    if len(payload) != _PAYLOAD_BYTES:
        return
    free_bytes = int.from_bytes(payload[DATA_ID_BYTES:], "big")
    if free_bytes <= MOST_FREE:
        sender.free_bytes = free_bytes
        repair_of(state).learn(sender, payload[:DATA_ID_BYTES])


MESSAGE: Final[Message] = Message(
    kinds.DATAID,
    "DATAID",
    kinds.OF_UNKNOWN,
    "every node, with its data ID and its free memory, to nodes with the feature",
    "if the data ID changed, the sender lost its jobs, and the receiver makes the copies that are missing",
    handle_dataid,
    feature=kinds.FEATURE_REPAIR,
)
