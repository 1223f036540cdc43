"""Counters: one declaration feeds INFO, the metric for Prometheus, CONFIG RESETSTAT and the reference page.

A room declares what it counts as `Counter` rows, constants shared by all nodes of a process. Each node keeps a `Count`
for each row (`Counters`), which the room's code takes once and adds to: `self.delivered.value += 1`.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.telemetry.fields import Fields
from disqued.core.telemetry.histogram import Histogram


class Counter:
    """A number that only grows, until CONFIG RESETSTAT.

    `name` is its field in the room's section of INFO, unless `shown` is False. Its metric is `disque_<name>_total`, or
    `metric`, with `label`, a name and a value, where several counters share one metric; `metric` is empty for none.
    `text` says what is counted, in one sentence.
    """

    def __init__(
        self,
        name: str,
        text: str,
        *,
        metric: str | None = None,
        label: tuple[str, str] | None = None,
        shown: bool = True,
    ) -> None:
        self.name = name
        self.text = text
        self.metric = f"disque_{name}_total" if metric is None else metric
        self.label = label
        self.shown: bool = shown


class Measure:
    """Values by size: a histogram, as metric `metric`, in buckets that `bounds` end; `per` is their unit."""

    def __init__(self, name: str, metric: str, text: str, bounds: tuple[int, ...], per: int) -> None:
        self.name = name
        self.metric = metric
        self.text = text
        self.bounds = bounds
        self.per: int = per


class Count:
    """The number of one counter on one node."""

    def __init__(self) -> None:
        self.value: i64 = 0


class Counters:
    """What one node counts."""

    def __init__(self) -> None:
        self._counts: dict[Counter, Count] = {}
        self._histograms: dict[Measure, Histogram] = {}

    def of(self, counter: Counter) -> Count:
        """The node's number for a row."""
        count = self._counts.get(counter)
        if count is None:
            count = Count()
            self._counts[counter] = count
        return count

    def histogram(self, measure: Measure) -> Histogram:
        """The node's histogram for a row."""
        histogram = self._histograms.get(measure)
        if histogram is None:
            histogram = Histogram(measure.bounds, measure.per)
            self._histograms[measure] = histogram
        return histogram

    def value(self, counter: Counter) -> int:
        """The number of a row, for those who show it."""
        return int(self.of(counter).value)

    def fields(self, counters: tuple[Counter, ...]) -> Fields:
        """The counters of a room as fields of its section of INFO."""
        return [(counter.name, self.value(counter)) for counter in counters if counter.shown]

    def reset(self) -> None:
        """Start from zero (CONFIG RESETSTAT)."""
        for count in self._counts.values():
            count.value = 0
        for histogram in self._histograms.values():
            histogram.reset()
