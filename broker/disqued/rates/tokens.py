"""TOKENS: the rate home of a queue grants deliveries, or asks for the part of this node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.rates.counters import TOKENS_REFUSED
from disqued.rates.payload import MalformedError, unpack_told
from disqued.rates.room import rates_of

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_tokens(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Deliver jobs with the tokens, or report. What comes from another node than the home is ignored."""
    try:
        told = unpack_told(frame.payload)
    except MalformedError:
        state.counters.add(TOKENS_REFUSED)
        return
    rates_of(state).told(sender, told)


MESSAGE: Final[Message] = Message(
    kinds.TOKENS,
    "TOKENS",
    kinds.OF_UNKNOWN,
    "the rate home of a queue, to a node that asked: tokens, maybe none, and why there are not more; and, while "
    "clients wait, to the members whose parts of the limits it will not have for longer, marked: they must report",
    "the receiver delivers as many jobs; marked, it answers TOKENASK if the sender is the home, and gives its part for "
    "a second from the stamp, unless the part may still belong to a former home",
    handle_tokens,
    feature=kinds.FEATURE_TOKENS,
)
