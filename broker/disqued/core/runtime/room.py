"""A room of one node: its state, and the events that it hears.

A room's package declares what the room adds to a node as a value (`runtime.subsystem`), from which each node makes one
`Room`. The room's state is in its attributes and nowhere else; its functions find it by name in `NodeState.rooms`.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from disqued.core.lifecycle.listener import Listener
from disqued.core.runtime.state import NodeState


@mypyc_attr(allow_interpreted_subclasses=True)
class Room(Listener):
    """The base class of rooms: without state, and hears no events."""

    def __init__(self, state: NodeState) -> None:
        self.state = state
