"""What a metric is: a row that says how it is called, what it means, and where the number is read.

Each room declares the rows of what it counts (`metrics.py`) and gives them to its `Subsystem`. `disqued.metrics` makes
the page for Prometheus and the reference page of them. Names follow Prometheus' rules: base units (seconds, bytes), and
`_total` behind what only grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from disqued.core.telemetry.histogram import Histogram

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"

Source = TypeVar("Source")
Value: TypeAlias = "int | float | Histogram"
Sample: TypeAlias = "tuple[tuple[str, ...], Value]"
"""The values of the labels, in the order of the row, and the number."""


@dataclass(frozen=True)
class Metric(Generic[Source]):
    """One metric, read from a node (`NodeMetric`), from one queue (`QueueMetric`), or from its surroundings."""

    name: str
    kind: str
    """COUNTER, GAUGE or HISTOGRAM."""
    help: str
    """One sentence: what it counts, in which unit if the name does not say it, and when it is zero or missing."""
    read: Callable[[Source], Iterable[Sample]]
    """May be read bit by bit with other things done in between: what it goes through must not change meanwhile."""
    labels: tuple[str, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """The names under which Prometheus keeps its numbers."""
        if self.kind == HISTOGRAM:
            return (f"{self.name}_bucket", f"{self.name}_sum", f"{self.name}_count")
        return (self.name,)


def counter(name: str, text: str, read: Callable[[Source], int | float]) -> Metric[Source]:
    """A number that only grows."""
    return Metric(name, COUNTER, text, _one(read))


def gauge(name: str, text: str, read: Callable[[Source], int | float]) -> Metric[Source]:
    """A number that comes and goes."""
    return Metric(name, GAUGE, text, _one(read))


def histogram(name: str, text: str, read: Callable[[Source], Histogram]) -> Metric[Source]:
    """Values by size."""
    return Metric(name, HISTOGRAM, text, _one(read))


def _one(read: Callable[[Source], Value]) -> Callable[[Source], Iterable[Sample]]:
    """One sample without labels."""

    def samples(source: Source) -> Iterable[Sample]:
        yield ((), read(source))

    return samples
