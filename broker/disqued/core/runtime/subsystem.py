"""A room of the node as a value: what it adds to the whole.

`disqued.node` holds the list of all of them; a room plugs in by one line there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from disqued.core.commands.command import Command
from disqued.core.queues.queue import Queue
from disqued.core.runtime.message import Message
from disqued.core.runtime.state import NodeState
from disqued.core.telemetry.fields import Fields
from disqued.core.telemetry.metric import Metric


class QueueSeen(NamedTuple):
    """A queue, and when it is looked at."""

    queue: Queue
    now_ms: int


NodeMetric: TypeAlias = Metric[NodeState]
QueueMetric: TypeAlias = Metric[QueueSeen]
"""The reader of a QueueMetric adds the label `queue`: rows only name the labels behind it."""


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
