"""Every metric is declared once, follows the naming rules of Prometheus, and is on the reference page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from disqued.core.telemetry.histogram import PER_MS, Histogram
from disqued.core.telemetry.metric import COUNTER, GAUGE, HISTOGRAM, Metric
from disqued.metrics.catalog import ALL, SERIES, labels_of
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalNode
from metrics.pages import OPENMETRICS, scrape

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "metrics.md"
UNITS = ("_seconds", "_bytes", "_total", "_info", "_ratio")
WRONG_UNITS = re.compile(r"_(ms|milliseconds|minutes|kb|mb|percent|count)(_|$)")


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_metric_has_a_valid_name_and_help(metric: Metric[Any]) -> None:
    assert re.fullmatch(r"(disque|process)_[a-z]+(_[a-z]+)*", metric.name)
    assert metric.kind in {COUNTER, GAUGE, HISTOGRAM}
    assert metric.name.endswith("_total") == (metric.kind == COUNTER)
    assert not WRONG_UNITS.search(metric.name)
    assert metric.help.endswith(".")
    assert "|" not in metric.help, "the help is in a Markdown table"
    assert not {"le", "instance", "job", "pod", "node"} & set(labels_of(metric))
    assert f"| `{metric.name}` |" in PAGE.read_text()
    if metric.kind == HISTOGRAM:
        assert metric.name.endswith("_seconds")


def test_names_are_unique() -> None:
    names = [metric.name for metric in ALL]
    assert len(names) == len(set(names))
    assert len(SERIES) == sum(len(metric.series) for metric in ALL)


@pytest.mark.parametrize("accept", ["", OPENMETRICS, "text/plain;version=1.0.0;escaping=allow-utf-8"])
def test_page_has_exactly_the_declared_metrics(accept: str) -> None:
    cluster = Cluster(2)
    one = cluster.members[0]
    two = cluster.members[1]
    for words in (("CLUSTER", "ORDERED", "INIT", one.id), ("QNEW", "ordered", "ORDERED", "ON", one.id)):
        one.admin.send(*words)
        cluster.until(lambda: not one.admin.silent)
        assert one.admin.next_reply() == b"OK"
    two.skew_ms = 2000
    two.jump()
    cluster.run(seconds=20)
    one.admin.call("QCONF", "q", "SET", "inflight", 1)
    one.admin.add("q", "x", "REPLICATE", 1, "PRIORITY", 1)
    one.admin.call("NONSENSE")
    page = scrape(one, accept=accept)
    missing = SERIES - page.names
    assert missing == {
        "disque_http_requests_total",
        "disque_tls_certificate_expiry_timestamp_seconds",
        "disque_tls_certificate_refused",
    }, "metrics of the server"
    assert page.names <= SERIES
    kinds = {series: metric.kind for metric in ALL for series in metric.series}
    assert {name: page.kinds[name] for name in page.names} == {name: kinds[name] for name in page.names}


def test_loading_node_has_a_metrics_page() -> None:
    local = LocalNode()
    local.node.state.loading = True
    assert scrape(local).value("disque_loading") == 1


def test_histogram_puts_each_value_into_one_bucket() -> None:
    histogram = Histogram((1, 5, 10), PER_MS)
    for value in (0, 1, 2, 5, 6, 10, 11, 1 << 40):
        histogram.observe(value)
    assert histogram.counts() == [2, 2, 2, 2]
    assert histogram.count == 8
    assert histogram.sum == 35 + (1 << 40)
    histogram.reset()
    assert (histogram.count, histogram.sum) == (0, 0)
