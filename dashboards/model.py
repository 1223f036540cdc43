"""The parts of a dashboard: rows of panels with queries. `build.py` converts them to Grafana's JSON.

A word in angle brackets stands for the selector of the dashboard's variables: `disque_jobs{<nodes>}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

CHOSEN: Final = {
    "<clusters>": 'namespace=~"$namespace",cluster=~"$cluster"',
    "<nodes>": 'namespace=~"$namespace",cluster=~"$cluster",instance=~"$instance"',
    "<queues>": 'namespace=~"$namespace",cluster=~"$cluster",instance=~"$instance",queue=~"$queue"',
    "<containers>": 'namespace=~"$namespace",container="broker"',
    "<spark>": 'namespace=~"$namespace",app=~"$app"',
}
"""The selectors of the variables. "All" is `.*`, which also matches series without the label."""

TENANTS: Final = {
    "{{instance}}": "{{namespace}}/{{instance}}",
    "{{queue}}": "{{namespace}}/{{cluster}} {{queue}}",
}
"""What distinguishes nodes and queues of different tenants in legends: names repeat in other namespaces."""

HEALTHY: Final = "green"
RISK: Final = "orange"
BAD: Final = "red"

WIDTH: Final = 24
"""The number of columns of Grafana's grid."""

Steps: TypeAlias = tuple[tuple[float, str], ...]
"""Thresholds and their colors. Values below the first one are green."""
Names: TypeAlias = tuple[tuple[float, str, str], ...]
"""Values with the words and colors that represent them."""


class Kind(Enum):
    """The kind of a panel."""

    STAT = "stat"
    LINES = "lines"
    STACK = "stack"
    STATES = "states"
    """A timeline of states, one band for each series."""
    TABLE = "table"
    HEATMAP = "heatmap"
    """How many values are in each bucket of a histogram."""


@dataclass(frozen=True)
class Query:
    """A query with the legend of its series, or with its column title in a table."""

    expr: str
    legend: str = ""
    unit: str = ""
    """The unit of its values, if it differs from the panel's. Lines with another unit have an axis of their own."""

    @property
    def promql(self) -> str:
        """The query with the selectors of the variables."""
        text = self.expr
        for word, selector in CHOSEN.items():
            text = text.replace(word, selector)
        return text

    @property
    def label(self) -> str:
        """The legend with the namespace, or namespace and cluster, of what it names."""
        text = self.legend
        for name, full_name in TENANTS.items():
            text = text.replace(name, full_name)
        return text


@dataclass(frozen=True)
class Panel:
    """A panel. The title says what it shows, the text what it means and which values are a problem."""

    title: str
    text: str
    unit: str
    queries: tuple[Query, ...]
    kind: Kind = Kind.LINES
    width: int = 8
    height: int = 8
    steps: Steps = ()
    names: Names = ()
    most: float | None = None
    """The maximum of the scale, if there is one."""
    leads_to: str = ""
    """The uid of the dashboard with details."""
    runbooks: bool = False
    """Whether the names of alerts in a table lead to their runbooks."""
    empty: str = ""
    """Why a healthy cluster may have no series for this panel."""


@dataclass(frozen=True)
class Row:
    """A row of panels with a title."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A variable: a selection of values of a label."""

    name: str
    label: str
    values: str
    """The query, a `label_values` of Grafana."""


@dataclass(frozen=True)
class Board:
    """A dashboard. Links use its uid, which must not change."""

    uid: str
    title: str
    text: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    annotates: bool = True
    """Whether its panels show when clusters are changed."""

    def panels(self) -> Iterator[Panel]:
        """Yield the panels of all rows."""
        for row in self.rows:
            yield from row.panels

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.uid}.json"


OF_BROKERS: Final = (
    Variable("namespace", "Namespace", "label_values(disque_build_info, namespace)"),
    Variable("cluster", "Cluster", 'label_values(disque_build_info{namespace=~"$namespace"}, cluster)'),
    Variable(
        "instance", "Node", 'label_values(disque_build_info{namespace=~"$namespace",cluster=~"$cluster"}, instance)'
    ),
)
OF_QUEUES: Final = (
    *OF_BROKERS,
    Variable(
        "queue",
        "Queue",
        'label_values(disque_queue_jobs{namespace=~"$namespace",cluster=~"$cluster",instance=~"$instance"}, queue)',
    ),
)
OF_OPERATOR: Final = (
    Variable("namespace", "Namespace", "label_values(disque_operator_cluster_phase, namespace)"),
    Variable("cluster", "Cluster", 'label_values(disque_operator_cluster_phase{namespace=~"$namespace"}, cluster)'),
)
OF_SPARK: Final = (
    Variable("namespace", "Namespace", "label_values(metrics_executor_totalCores, namespace)"),
    Variable("app", "Job", 'label_values(metrics_executor_totalCores{namespace=~"$namespace"}, app)'),
)


def stat(
    title: str,
    text: str,
    unit: str,
    expr: str,
    *,
    steps: Steps = (),
    names: Names = (),
    leads_to: str = "",
    empty: str = "",
) -> Panel:
    """Return a single-value panel for the top row."""
    query = (Query(expr),)
    return Panel(title, text, unit, query, Kind.STAT, 4, 4, steps, names, leads_to=leads_to, empty=empty)


def rate(metric: str, selector: str = "<nodes>", by: str = "") -> str:
    """Return the query for events per second, summed over the nodes and grouped by `by`."""
    grouped = f"sum by ({by}) " if by else "sum"
    return f"{grouped}(rate({metric}{{{selector}}}[$__rate_interval]))"


def quantile(share: float, histogram: str, by: str = "", selector: str = "<nodes>") -> str:
    """Return the query for a quantile of a histogram."""
    labels = f"le, {by}" if by else "le"
    buckets = f"sum by ({labels}) (rate({histogram}_bucket{{{selector}}}[$__rate_interval]))"
    return f"histogram_quantile({share}, {buckets})"


def heatmap(title: str, text: str, histogram: str, *, width: int = 12, empty: str = "") -> Panel:
    """Return a panel with all buckets of a histogram of seconds, where quantiles would hide two groups of values."""
    query = Query(f"sum by (le) (increase({histogram}_bucket{{<nodes>}}[$__rate_interval]))", "{{le}}")
    return Panel(title, text, "s", (query,), Kind.HEATMAP, width, empty=empty)


def halves(histogram: str, by: str = "") -> tuple[Query, ...]:
    """Return the queries for the median and the 99th percentile of a histogram."""
    name = f" {{{{{by}}}}}" if by else ""
    return tuple(
        Query(quantile(share, histogram, by), f"{word}{name}") for share, word in ((0.5, "median"), (0.99, "99 %"))
    )
