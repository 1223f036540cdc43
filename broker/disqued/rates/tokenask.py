"""TOKENASK: a node needs tokens of a queue whose rate home this node is, or says what it did with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.rates.counters import TOKENS_REFUSED
from disqued.rates.payload import MalformedError, unpack_ask
from disqued.rates.room import rates_of

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_tokenask(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Grant what there is, now or later, unless another node is the home."""
    try:
        ask = unpack_ask(frame.payload)
    except MalformedError:
        state.counters.add(TOKENS_REFUSED)
        return
    rates_of(state).asked(sender, ask)


MESSAGE: Final[Message] = Message(
    kinds.TOKENASK,
    "TOKENASK",
    kinds.OF_UNKNOWN,
    "a node with jobs and waiting clients of a queue with limits, to the rate home of the queue: at once, then every "
    "250 ms; also when it used or gives back tokens, when jobs in flight ended, and when the home wants its "
    "part of the limits",
    "TOKENS, now or when there are tokens",
    handle_tokenask,
    feature=kinds.FEATURE_TOKENS,
)
