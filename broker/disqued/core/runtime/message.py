"""A bus message: one row of the message table, which `disqued.node` composes from the rows of the rooms."""

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
    """One type of message. It is handled only if its sender is a member, unless it has `from_anyone` for a handler."""

    number: int
    """The type on the wire (`bus.kinds`)."""
    name: str
    payload: int
    """The kind of payload after the header (`bus.kinds.OF_...`)."""
    sent_by: str
    """Which node sends it, and to which nodes."""
    effect: str
    """What the receiver does."""
    handler: MessageHandler | None = None
    from_anyone: AnyoneHandler | None = None
    """A handler that gets the link of the frame, and the sender if it is known."""
    feature: int = 0
    """The bit by which nodes announce that they know the message; 0 for those of the original."""


def table_of(messages: Iterable[Message]) -> MessageTable:
    """The table that frames are parsed with. Raises ValueError if two messages have the same number or name."""
    table = MessageTable()
    for message in messages:
        table.add(message.number, message.name, message.payload)
    return table


def features_of(messages: Iterable[Message]) -> int:
    """The feature bits that a node with these messages announces."""
    features = 0
    for message in messages:
        features |= message.feature
    return features
