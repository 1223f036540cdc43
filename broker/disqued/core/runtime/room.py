"""A room of one node: what it keeps, and the events that it hears.

A room's package declares what it adds to the whole as a value (`runtime.subsystem`); for each node one `Room` is made
of it. What the room keeps stands in its attributes, and nobody else's; its functions reach it by the room's name in
`NodeState.rooms`.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from disqued.core.lifecycle.events import Listener
from disqued.core.runtime.state import NodeState


@mypyc_attr(allow_interpreted_subclasses=True)
class Room(Listener):
    """Keeps nothing and hears nothing; rooms derive from it."""

    def __init__(self, state: NodeState) -> None:
        self.state = state
