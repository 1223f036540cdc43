"""Generates the metrics page for Prometheus in small parts, in the requested format, with prometheus-client.

The caller takes one part after another and can do other work in between. One part takes a few milliseconds at most, for
any number of queues, nodes or clients.
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
from disqued.metrics import groups, queues, server
from disqued.metrics.catalog import QUEUE_LABEL
from disqued.metrics.queues import QueueScan, Selection
from disqued.ordered.figures import LedQueue
from disqued.ordered.metrics import QUEUE_VALUES

if TYPE_CHECKING:
    from disqued.core.queues.queue import Queue
    from disqued.metrics.server import ServerFigures
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
"""Maximum number of samples per part; a histogram has one line per bucket."""


class _Families(Collector):
    """An adapter of metric families for prometheus-client."""

    def __init__(self, *families: Family) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        return self._families


class Encoder:
    """Encodes metrics in one of the formats of Prometheus."""

    def __init__(self, accept: str) -> None:
        """`accept` is the value of the header `Accept`, which selects the format."""
        self._write, self.content_type = choose_encoder(accept)
        self.end = self._write(_Families())
        """The end of a page."""

    def text(self, family: Family) -> bytes:
        """Encode one metric."""
        return self._write(_Families(family)).removesuffix(self.end)

    def parts(self, metric: Metric[Any], labels: tuple[str, ...], samples: Iterable[Sample]) -> Iterator[bytes]:
        """Encode one metric in parts of a few samples; the first part has its help and type."""
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
        assert isinstance(family, metrics_core.HistogramMetricFamily), "a histogram needs a histogram family"
        bounds = [str(bound / value.per_second) for bound in value.bounds]
        buckets = list(zip([*bounds, "+Inf"], accumulate(value.counts()), strict=True))
        family.add_metric(labels, buckets, value.sum / value.per_second)
    else:
        assert not isinstance(family, metrics_core.HistogramMetricFamily), "a histogram family has only histograms"
        family.add_metric(labels, value)


def _of_queues(metric: Metric[QueueSeen], scan: QueueScan) -> Iterator[Sample]:
    """The samples of all selected queues."""
    for _, label, queue in scan.chosen:
        for values, value in _of_queue(metric, queue, scan.now_ms):
            yield ((label, *values), value)


def _of_queue(metric: Metric[QueueSeen], queue: Queue | LedQueue, now_ms: int) -> Iterable[Sample]:
    """The samples of one queue, or of an ordered queue."""
    if isinstance(queue, LedQueue):
        read = QUEUE_VALUES.get(metric.name)
        return () if read is None else read(queue, now_ms)
    return metric.read(QueueSeen(queue, now_ms))


def _queue_parts(node: Node, scan: QueueScan, encoder: Encoder) -> Iterator[bytes]:
    for metric in node.rooms.queue_metrics:
        yield from encoder.parts(metric, (QUEUE_LABEL, *metric.labels), _of_queues(metric, scan))


def page_of_queue(node: Node, name: bytes, encoder: Encoder) -> bytes:
    """Generate the page of one queue, with nothing but its series. A queue that does not exist is an empty one."""
    scan = QueueScan(node.state, Selection(0, names=(name,)))
    scan.add_named()
    return b"".join(_queue_parts(node, scan, encoder)) + encoder.end


def page(node: Node, figures: ServerFigures, selection: Selection, encoder: Encoder) -> Iterator[bytes]:
    """Generate the page in parts; after each part, which may be empty, other work can run."""
    state = node.state
    scan = QueueScan(state, selection)
    for _ in scan.steps():
        yield b""
    for _ in figures.look():
        yield b""
    yield b""
    for of_node in node.rooms.node_metrics:
        yield from encoder.parts(of_node, of_node.labels, of_node.read(state))
    for of_scan in (*groups.METRICS, *queues.METRICS):
        yield from encoder.parts(of_scan, of_scan.labels, of_scan.read(scan))
    yield from _queue_parts(node, scan, encoder)
    for of_server in server.METRICS:
        yield from encoder.parts(of_server, of_server.labels, of_server.read(figures))
    yield encoder.end
    while scan.chosen:  # freeing a hundred thousand of them at once would also take long
        del scan.chosen[-queues.AT_A_TIME :]
        yield b""
