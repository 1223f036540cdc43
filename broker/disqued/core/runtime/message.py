"""What a bus message is: one row of the message table, composed in `disqued.node` from those of the rooms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from disqued.bus.messagetable import MessageTable

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Link, Peer
    from disqued.core.runtime.state import NodeState

    MessageHandler = Callable[[NodeState, Peer, Frame], None]
    AnyoneHandler = Callable[[NodeState, Link, Peer | None, Frame], None]


@dataclass(frozen=True)
class Message:
    """One type of message. Only members of the cluster are heard, unless it has `from_anyone` instead of `handler`."""

    number: int
    """On the wire (`bus.kinds`)."""
    name: str
    payload: int
    """What follows the header (`bus.kinds.OF_...`)."""
    sent_by: str
    """Which node sends it, and to which."""
    effect: str
    """What the receiver does."""
    handler: MessageHandler | None = None
    from_anyone: AnyoneHandler | None = None
    """Gets the link it came on, and the sender if it is known."""
    feature: int = 0
    """The bit by which nodes announce that they know the message; 0 for those of the original."""


def table_of(messages: Iterable[Message]) -> MessageTable:
    """The table by which frames are read. Raises ValueError when two messages have one number or one name."""
    table = MessageTable()
    for message in messages:
        table.add(message.number, message.name, message.payload)
    return table


def features_of(messages: Iterable[Message]) -> int:
    """What a node that knows these messages announces."""
    features = 0
    for message in messages:
        features |= message.feature
    return features
