"""CATALOG and CATALOGASK: a node learns which ordered queues there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.ordered.counters import MESSAGES_REFUSED
from disqued.ordered.payload import MalformedPayloadError, unpack_catalog
from disqued.ordered.room import ordered_of

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_catalogask(state: NodeState, sender: Peer, _frame: Frame) -> None:
    """Tell the catalog."""
    room = ordered_of(state)
    if room.has_catalog:
        room.tell_catalog(sender)


def handle_catalog(state: NodeState, _sender: Peer, frame: Frame) -> None:
    """Take the catalog, unless this node knows a newer version, or has a replica of group 0 itself."""
    try:
        told = unpack_catalog(frame.payload)
    except MalformedPayloadError:
        state.counters.add(MESSAGES_REFUSED)
        return
    ordered_of(state).learn_catalog(told)


CATALOGASK: Final[Message] = Message(
    kinds.CATALOGASK,
    "CATALOGASK",
    kinds.OF_UNKNOWN,
    "a node without a replica of group 0, to one whose BEAT tells a newer version, at most every 500 ms",
    "CATALOG",
    handle_catalogask,
    feature=kinds.FEATURE_ORDERED,
)
CATALOG: Final[Message] = Message(
    kinds.CATALOG,
    "CATALOG",
    kinds.OF_UNKNOWN,
    "the node that was asked",
    "the receiver knows the ordered queues, and begins the replicas that the catalog gives it",
    handle_catalog,
    feature=kinds.FEATURE_ORDERED,
)
