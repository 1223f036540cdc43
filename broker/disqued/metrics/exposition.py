"""The page for Prometheus, in small parts: prometheus-client writes them, in the format that was asked for.

Whoever wants the page takes part after part and may do other things in between. Making one takes a few milliseconds at
most, however many queues, nodes or clients there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from prometheus_client import metrics_core
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from disqued.core.runtime.subsystem import QueueSeen
from disqued.core.telemetry.histogram import Histogram
from disqued.core.telemetry.metric import COUNTER, GAUGE, HISTOGRAM, Metric, Sample
from disqued.metrics import queues, surroundings
from disqued.metrics.catalog import QUEUE_LABEL
from disqued.metrics.queues import Survey, Wanted

if TYPE_CHECKING:
    from disqued.metrics.surroundings import Surroundings
    from disqued.node import Node

Family: TypeAlias = (
    metrics_core.CounterMetricFamily | metrics_core.GaugeMetricFamily | metrics_core.HistogramMetricFamily
)
_FAMILIES: Final[dict[str, type[Family]]] = {
    COUNTER: metrics_core.CounterMetricFamily,
    GAUGE: metrics_core.GaugeMetricFamily,
    HISTOGRAM: metrics_core.HistogramMetricFamily,
}
_IN_A_PART: Final = {COUNTER: 100, GAUGE: 100, HISTOGRAM: 10}
"""Samples that are written without a break; a histogram has a line for each of its buckets."""


class _Families(Collector):
    """What prometheus-client takes to write."""

    def __init__(self, *families: Family) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        return self._families


class Encoder:
    """Writes in one of the formats of Prometheus."""

    def __init__(self, accept: str) -> None:
        """`accept` is what the client says that it can read (the header of that name)."""
        self._write, self.content_type = choose_encoder(accept)
        self.end = self._write(_Families())
        """What stands at the end of a page."""

    def text(self, family: Family) -> bytes:
        """One metric."""
        return self._write(_Families(family)).removesuffix(self.end)

    def parts(self, metric: Metric[Any], labels: tuple[str, ...], samples: Iterable[Sample]) -> Iterator[bytes]:
        """One metric in parts of a few samples each, the first of which has what is said about it."""
        make = _FAMILIES[metric.kind]
        head = self.text(make(metric.name, metric.help, labels=labels))
        yield head
        left = iter(samples)
        while some := list(islice(left, _IN_A_PART[metric.kind])):
            family = make(metric.name, metric.help, labels=labels)
            for values, value in some:
                _add(family, values, value)
            yield self.text(family)[len(head) :]


def _add(family: Family, labels: tuple[str, ...], value: float | Histogram) -> None:
    if isinstance(value, Histogram):
        assert isinstance(family, metrics_core.HistogramMetricFamily), "only its kind has histograms"
        bounds = [str(bound / value.per_second) for bound in value.bounds]
        buckets = list(zip([*bounds, "+Inf"], accumulate(value.counts()), strict=True))
        family.add_metric(labels, buckets, value.sum / value.per_second)
    else:
        assert not isinstance(family, metrics_core.HistogramMetricFamily), "it has nothing else"
        family.add_metric(labels, value)


def _of_queues(metric: Metric[QueueSeen], survey: Survey) -> Iterator[Sample]:
    """The samples of all queues that were chosen."""
    for _, label, queue in survey.chosen:
        for values, value in metric.read(QueueSeen(queue, survey.now_ms)):
            yield ((label, *values), value)


def page(node: Node, around: Surroundings, wanted: Wanted, encoder: Encoder) -> Iterator[bytes]:
    """The page in parts, some of them empty: each stands for work after which others may have a turn."""
    state = node.state
    survey = Survey(state, wanted)
    for _ in survey.steps():
        yield b""
    for _ in around.look():
        yield b""
    yield b""
    for of_node in node.rooms.node_metrics:
        yield from encoder.parts(of_node, of_node.labels, of_node.read(state))
    for of_survey in queues.METRICS:
        yield from encoder.parts(of_survey, of_survey.labels, of_survey.read(survey))
    for of_queue in node.rooms.queue_metrics:
        yield from encoder.parts(of_queue, (QUEUE_LABEL, *of_queue.labels), _of_queues(of_queue, survey))
    for of_server in surroundings.METRICS:
        yield from encoder.parts(of_server, of_server.labels, of_server.read(around))
    yield encoder.end
    while survey.chosen:  # to free a hundred thousand of them takes long, too
        del survey.chosen[-queues.AT_A_TIME :]
        yield b""
