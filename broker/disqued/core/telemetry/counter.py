"""Counters: one declaration feeds INFO, the metric for Prometheus, CONFIG RESETSTAT and the reference page.

A room declares its counters as `Counter` and `Measure` rows, constants that all nodes of a process share
(`counters.py` of the room). Each node keeps a number or a histogram for each row in `NodeState.counters`.
"""

from __future__ import annotations

from itertools import count
from typing import Final

from mypy_extensions import i64

from disqued.core.telemetry.fields import Fields
from disqued.core.telemetry.histogram import Histogram

_numbers: Final = count()
"""Rows are numbered as they are declared, so that a node finds its number for a row without hashing."""


class Counter:
    """A number that grows until CONFIG RESETSTAT.

    `name` is its field in the room's section of INFO, unless `shown` is False. Its metric is `disque_<name>_total`, or
    `metric`, with `labels` (names and values) where several counters share one metric; `metric` is empty for none.
    `text` says what is counted, in one or two sentences.
    """

    def __init__(
        self,
        name: str,
        text: str,
        *,
        metric: str | None = None,
        labels: tuple[tuple[str, str], ...] = (),
        shown: bool = True,
    ) -> None:
        self.number: i64 = next(_numbers)
        self.name = name
        self.text = text
        self.metric = f"disque_{name}_total" if metric is None else metric
        self.labels = labels
        self.shown: bool = shown


class Measure:
    """A histogram. `bounds` are the upper limits of its buckets; `per_second` of their unit make a second."""

    def __init__(self, metric: str, text: str, bounds: tuple[int, ...], per_second: int) -> None:
        self.number: i64 = next(_numbers)
        self.metric = metric
        self.text = text
        self.bounds = bounds
        self.per_second: int = per_second


class Count:
    """The value of one counter on one node."""

    def __init__(self) -> None:
        self.value: i64 = 0


class Counters:
    """The counters and histograms of one node."""

    def __init__(self) -> None:
        self._cells: list[Count] = []
        """Numbers without a row."""
        self._counts: list[Count] = []
        self._histograms: list[Histogram | None] = []
        """By the numbers of their rows."""

    def add(self, counter: Counter, by: i64 = 1) -> None:
        """Increase a counter."""
        counts = self._counts
        if counter.number < len(counts):
            counts[counter.number].value += by
        else:
            self.of(counter).value += by

    def observe(self, measure: Measure, value: i64) -> None:
        """Count one more value in a histogram."""
        self.histogram(measure).observe(value)

    def of(self, counter: Counter) -> Count:
        """The node's number for a row, for code that counts so often that it keeps it."""
        while counter.number >= len(self._counts):
            self._counts.append(Count())
        return self._counts[counter.number]

    def cell(self) -> Count:
        """A number without a row, for what is counted by a label that is not known beforehand."""
        cell = Count()
        self._cells.append(cell)
        return cell

    def adopt(self, counter: Counter, counted: Count) -> None:
        """Have a row show a number that is counted where `NodeState` is not known."""
        self.of(counter)
        self._counts[counter.number] = counted

    def histogram(self, measure: Measure) -> Histogram:
        """The node's histogram for a row."""
        while measure.number >= len(self._histograms):
            self._histograms.append(None)
        histogram = self._histograms[measure.number]
        if histogram is None:
            histogram = Histogram(measure.bounds, measure.per_second)
            self._histograms[measure.number] = histogram
        return histogram

    def value(self, counter: Counter) -> int:
        """The number of a row."""
        return int(self.of(counter).value)

    def fields(self, counters: tuple[Counter, ...]) -> Fields:
        """The counters of a room as fields of its section of INFO."""
        return [(counter.name, self.value(counter)) for counter in counters if counter.shown]

    def reset(self) -> None:
        """Start from zero (CONFIG RESETSTAT)."""
        for counted in (*self._cells, *self._counts):
            counted.value = 0
        for histogram in self._histograms:
            if histogram is not None:
                histogram.reset()
