"""A room of the node as a value: what it adds to the whole.

`disqued.node` holds the list of all of them; a room plugs in by one line there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from disqued.core.command import Command
from disqued.core.message import Message

if TYPE_CHECKING:
    from disqued.core.metric import NodeMetric, QueueMetric
    from disqued.core.state import NodeState

    Fields = list[tuple[str, object]]


@dataclass(frozen=True)
class Subsystem:
    """One room: its name, the commands, bus messages and regular duties it owns."""

    name: str
    commands: tuple[Command, ...] = ()
    messages: tuple[Message, ...] = ()
    cron: Callable[[NodeState], None] | None = None
    """Called ten times per second."""
    info: Callable[[NodeState], Fields] | None = None
    """Fields of the section that INFO shows under the room's name."""
    metrics: tuple[NodeMetric, ...] = ()
    """What the room counts, for Prometheus,"""
    queue_metrics: tuple[QueueMetric, ...] = ()
    """and what it counts of each queue."""
