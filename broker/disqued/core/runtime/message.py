"""What a bus message is: one row of the message table, composed in `disqued.node` from those of the rooms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Link, Peer
    from disqued.core.runtime.state import NodeState

    MessageHandler = Callable[[NodeState, Peer, Frame], None]
    AnyoneHandler = Callable[[NodeState, Link, Peer | None, Frame], None]


@dataclass(frozen=True)
class Message:
    """One type of message. Only members of the cluster are heard, unless it has `from_anyone` instead of `handler`."""

    kind: int
    handler: MessageHandler | None = None
    from_anyone: AnyoneHandler | None = None
    """Gets the link it came on, and the sender if it is known."""
