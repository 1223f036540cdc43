"""A metric: a row with its name, its meaning, and how its value is read.

Each room declares rows (`metrics.py`) and passes them to its `Subsystem`. `disqued.metrics` makes the page for
Prometheus and the reference page from them. Names follow Prometheus' rules: base units (seconds, bytes), and the suffix
`_total` for counters.
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
"""The values of the labels, in the order of the row, and the value of the metric."""


@dataclass(frozen=True)
class Metric(Generic[Source]):
    """One metric, read from a node (`NodeMetric`), from one queue (`QueueMetric`), or from its surroundings."""

    name: str
    kind: str
    """COUNTER, GAUGE or HISTOGRAM."""
    help: str
    """One sentence: what it counts, its unit if the name does not say it, and when it is zero or missing."""
    read: Callable[[Source], Iterable[Sample]]
    """Reads the samples. It may be paused between samples, so it must not iterate over what can change meanwhile."""
    labels: tuple[str, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its series in Prometheus."""
        if self.kind == HISTOGRAM:
            return (f"{self.name}_bucket", f"{self.name}_sum", f"{self.name}_count")
        return (self.name,)


def counter(name: str, text: str, read: Callable[[Source], int | float]) -> Metric[Source]:
    """Declare a number that only grows."""
    return Metric(name, COUNTER, text, _one(read))


def gauge(name: str, text: str, read: Callable[[Source], int | float]) -> Metric[Source]:
    """Declare a number that goes up and down."""
    return Metric(name, GAUGE, text, _one(read))


def histogram(name: str, text: str, read: Callable[[Source], Histogram]) -> Metric[Source]:
    """Declare values by size."""
    return Metric(name, HISTOGRAM, text, _one(read))


def _one(read: Callable[[Source], Value]) -> Callable[[Source], Iterable[Sample]]:
    """One sample without labels."""

    def samples(source: Source) -> Iterable[Sample]:
        yield ((), read(source))

    return samples
