"""What a dashboard is made of: rows of panels, each with its queries. `build.py` makes Grafana's JSON of it.

Queries name what the variables at the top choose by a word in pointed brackets: `disque_jobs{<nodes>}`.
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
    "<spark>": 'namespace=~"$namespace",app=~"$app"',
}
"""Which series the variables choose. Their "All" is `.*`, which also takes series without the label."""

HEALTHY: Final = "green"
RISK: Final = "orange"
BAD: Final = "red"

WIDTH: Final = 24
"""Columns of Grafana's grid."""

Steps: TypeAlias = tuple[tuple[float, str], ...]
"""From which value on which colour; below the first one all is well."""
Names: TypeAlias = tuple[tuple[float, str, str], ...]
"""Values that stand for words, with their colours."""


class Kind(Enum):
    """How a panel looks."""

    STAT = "stat"
    LINES = "lines"
    STACK = "stack"
    STATES = "states"
    """Bands in time: who was in which state."""
    TABLE = "table"


@dataclass(frozen=True)
class Query:
    """A query with what names its series, or the column it fills in a table."""

    expr: str
    legend: str = ""
    unit: str = ""
    """Of its column in a table, where it is another than the panel's."""

    @property
    def promql(self) -> str:
        """With the variables in it."""
        text = self.expr
        for word, selector in CHOSEN.items():
            text = text.replace(word, selector)
        return text


@dataclass(frozen=True)
class Panel:
    """A panel: the title says what is seen, the text what it means and when to worry."""

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
    """The end of the scale, where there is one."""
    leads_to: str = ""
    """The uid of the dashboard with more about it."""
    empty: str = ""
    """Why there may be no series, though all is well."""


@dataclass(frozen=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A choice at the top, of the values of a label."""

    name: str
    label: str
    values: str
    """As Grafana's `label_values` takes it."""


@dataclass(frozen=True)
class Board:
    """A dashboard. Links to it stand on its uid, which never changes."""

    uid: str
    title: str
    text: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]

    def panels(self) -> Iterator[Panel]:
        """All of them."""
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
    """A figure of the top row."""
    query = (Query(expr),)
    return Panel(title, text, unit, query, Kind.STAT, 4, 4, steps, names, leads_to=leads_to, empty=empty)


def rate(metric: str, selector: str = "<nodes>", by: str = "") -> str:
    """Events per second, added up over the nodes; `by` keeps labels apart."""
    grouped = f"sum by ({by}) " if by else "sum"
    return f"{grouped}(rate({metric}{{{selector}}}[$__rate_interval]))"


def quantile(share: float, histogram: str, by: str = "", selector: str = "<nodes>") -> str:
    """The value that a share of what was observed does not exceed."""
    labels = f"le, {by}" if by else "le"
    buckets = f"sum by ({labels}) (rate({histogram}_bucket{{{selector}}}[$__rate_interval]))"
    return f"histogram_quantile({share}, {buckets})"


def halves(histogram: str, by: str = "") -> tuple[Query, ...]:
    """The median of a histogram and what one in a hundred exceeds."""
    name = f" {{{{{by}}}}}" if by else ""
    return tuple(
        Query(quantile(share, histogram, by), f"{word}{name}") for share, word in ((0.5, "median"), (0.99, "99 %"))
    )
