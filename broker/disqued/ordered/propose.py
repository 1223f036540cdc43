"""PROPOSE and PROPOSED: requests to the leaders of groups, and their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.ordered.counters import MESSAGES_REFUSED
from disqued.ordered.payload import MalformedPayloadError, pack_answered, unpack_answered, unpack_asked
from disqued.ordered.requests import NOT_LEADER
from disqued.ordered.room import ordered_of

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_propose(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Pass the requests to the replicas here, which answer now or later."""
    exchange = ordered_of(state).exchange
    try:
        requests = unpack_asked(frame.payload)
    except MalformedPayloadError:
        state.counters.add(MESSAGES_REFUSED)
        return
    for number, group, kind, data in requests:
        replica = exchange.replicas.get(group)
        if replica is None:
            exchange.add(sender.id, kinds.PROPOSED, pack_answered(number, NOT_LEADER, b""))
        else:
            replica.accept(sender.id, number, kind, data)


def handle_proposed(state: NodeState, _sender: Peer, frame: Frame) -> None:
    """Pass the answers to those that wait for them."""
    exchange = ordered_of(state).exchange
    try:
        answers = unpack_answered(frame.payload)
    except MalformedPayloadError:
        state.counters.add(MESSAGES_REFUSED)
        return
    for number, status, data in answers:
        waiting = exchange.numbered.get(number)
        if waiting is not None:
            waiting.answer(number, status, data)


PROPOSE: Final[Message] = Message(
    kinds.PROPOSE,
    "PROPOSE",
    kinds.OF_UNKNOWN,
    "a node whose clients use an ordered queue, to the node that leads its group",
    "PROPOSED for each request: at once if the receiver does not lead, otherwise when the entry is applied",
    handle_propose,
    feature=kinds.FEATURE_ORDERED,
)
PROPOSED: Final[Message] = Message(
    kinds.PROPOSED,
    "PROPOSED",
    kinds.OF_UNKNOWN,
    "the receiver of PROPOSE",
    "clients get their replies, or the request is sent to another node",
    handle_proposed,
    feature=kinds.FEATURE_ORDERED,
)
