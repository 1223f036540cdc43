"""Counters: one declaration feeds INFO, the metric for Prometheus, CONFIG RESETSTAT and the reference page.

A room declares what it counts as `Counter` and `Measure` rows, constants that all nodes of a process share
(`counters.py` of the room). Each node keeps a number or a histogram for each row in `NodeState.counters`.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.telemetry.fields import Fields
from disqued.core.telemetry.histogram import Histogram


class Counter:
    """A number that only grows, until CONFIG RESETSTAT.

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
        self.name = name
        self.text = text
        self.metric = f"disque_{name}_total" if metric is None else metric
        self.labels = labels
        self.shown: bool = shown


class Measure:
    """Values by size: a histogram in buckets that `bounds` end, `per_second` of whose unit make a second."""

    def __init__(self, metric: str, text: str, bounds: tuple[int, ...], per_second: int) -> None:
        self.metric = metric
        self.text = text
        self.bounds = bounds
        self.per_second: int = per_second


class Count:
    """The number of one counter on one node."""

    def __init__(self) -> None:
        self.value: i64 = 0


class Counters:
    """What one node counts."""

    def __init__(self) -> None:
        self._cells: list[Count] = []
        self._counts: dict[Counter, Count] = {}
        self._histograms: dict[Measure, Histogram] = {}

    def add(self, counter: Counter, by: i64 = 1) -> None:
        """Count `by` more."""
        count = self._counts.get(counter)
        if count is None:
            count = self.of(counter)
        count.value += by

    def observe(self, measure: Measure, value: i64) -> None:
        """One more value of a histogram."""
        self.histogram(measure).observe(value)

    def of(self, counter: Counter) -> Count:
        """The node's number for a row, for code that counts so often that it keeps it."""
        count = self._counts.get(counter)
        if count is None:
            count = self.cell()
            self._counts[counter] = count
        return count

    def cell(self) -> Count:
        """A number without a row, for what is counted by a label that is not known beforehand."""
        count = Count()
        self._cells.append(count)
        return count

    def adopt(self, counter: Counter, count: Count) -> None:
        """Have a row show a number that is counted where `NodeState` is not known."""
        self._cells.append(count)
        self._counts[counter] = count

    def histogram(self, measure: Measure) -> Histogram:
        """The node's histogram for a row."""
        histogram = self._histograms.get(measure)
        if histogram is None:
            histogram = Histogram(measure.bounds, measure.per_second)
            self._histograms[measure] = histogram
        return histogram

    def value(self, counter: Counter) -> int:
        """The number of a row."""
        return int(self.of(counter).value)

    def fields(self, counters: tuple[Counter, ...]) -> Fields:
        """The counters of a room as fields of its section of INFO."""
        return [(counter.name, self.value(counter)) for counter in counters if counter.shown]

    def reset(self) -> None:
        """Start from zero (CONFIG RESETSTAT)."""
        for count in self._cells:
            count.value = 0
        for histogram in self._histograms.values():
            histogram.reset()
