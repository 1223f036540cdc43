"""A room as a value: everything that the room adds to a node.

`disqued.node.rooms` lists the rooms. One line there adds a room: all tables (commands, messages, records, counters,
metrics, sections of INFO) follow from the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from disqued.config import Option
from disqued.core.commands.command import Command
from disqued.core.queues.queue import Queue
from disqued.core.runtime.message import Message
from disqued.core.runtime.recordkind import RecordKind
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.core.telemetry.counter import Counter, Measure
from disqued.core.telemetry.fields import Fields
from disqued.core.telemetry.metric import COUNTER, HISTOGRAM, Metric, Sample


class QueueSeen(NamedTuple):
    """A queue, and the time at which it is read."""

    queue: Queue
    now_ms: int


NodeMetric: TypeAlias = Metric[NodeState]
QueueMetric: TypeAlias = Metric[QueueSeen]
"""A metric of each queue. Rows name only the labels after `queue`, which is added when the metrics are read."""


@dataclass(frozen=True)
class Subsystem:
    """One room: its name, and what it adds to a node."""

    name: str
    room: Callable[[NodeState], Room] = Room
    """Creates the room of one node."""
    commands: tuple[Command, ...] = ()
    messages: tuple[Message, ...] = ()
    records: tuple[RecordKind, ...] = ()
    """Its kinds of records in the append-only file."""
    counters: tuple[Counter, ...] = ()
    """Counters: fields of INFO and metrics, which CONFIG RESETSTAT resets."""
    measures: tuple[Measure, ...] = ()
    """Histograms: metrics, which CONFIG RESETSTAT resets."""
    info: Callable[[NodeState], Fields] | None = None
    """Returns the fields before the counters in the room's section of INFO."""
    metrics: tuple[NodeMetric, ...] = ()
    """Metrics of the node that are not counters."""
    queue_metrics: tuple[QueueMetric, ...] = ()
    """Metrics of each queue."""
    announced_features: int = 0
    """Feature bits that the node announces in addition to those of its messages."""
    directives: tuple[Option[Any], ...] = ()
    """Directives in addition to the table in `disqued.config`, which programs other than the broker read too."""

    def section(self, state: NodeState) -> Fields:
        """The room's section of INFO."""
        fields = [] if self.info is None else self.info(state)
        return [*fields, *state.counters.fields(self.counters)]

    def node_metrics(self) -> tuple[NodeMetric, ...]:
        """All metrics of the node; those of the counters come first."""
        families: dict[str, list[Counter]] = {}
        for counter in self.counters:
            if counter.metric:
                families.setdefault(counter.metric, []).append(counter)
        counted = [_counted(name, counters) for name, counters in families.items()]
        return (*counted, *map(_measured, self.measures), *self.metrics)


def _counted(name: str, counters: list[Counter]) -> NodeMetric:
    """The metric of one counter, or of several that differ in their labels."""

    def read(state: NodeState) -> Iterable[Sample]:
        for counter in counters:
            yield tuple([value for _, value in counter.labels]), state.counters.value(counter)

    return Metric(name, COUNTER, counters[0].text, read, tuple([label for label, _ in counters[0].labels]))


def _measured(measure: Measure) -> NodeMetric:
    """The metric of one histogram."""

    def read(state: NodeState) -> Iterable[Sample]:
        yield (), state.counters.histogram(measure)

    return Metric(measure.metric, HISTOGRAM, measure.text, read)
