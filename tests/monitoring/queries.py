"""The queries of all dashboards and alerts, and the series that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dashboards.alerts.all import ALERTS, RECORDS
from dashboards.all import BOARDS
from dashboards.model import CHOSEN, Variable
from disque_operator.metrics import Metrics
from disqued.metrics import catalog

FOREIGN = {
    "up": "Prometheus, for each target",
    "ALERTS": "Prometheus, for each alert",
    "container_cpu_cfs_periods_total": "Kubernetes",
    "container_cpu_cfs_throttled_periods_total": "Kubernetes",
    "kubelet_volume_stats_available_bytes": "Kubernetes",
    "kubelet_volume_stats_capacity_bytes": "Kubernetes",
}
"""Series of other programs, and the program that exports them."""
FOREIGN_LABELS = {"up": set(), "ALERTS": {"alertname", "alertstate", "severity", "slo"}} | {
    name: {"persistentvolumeclaim"} for name in FOREIGN if name.startswith("kubelet")
}
FOREIGN_LABELS |= {name: {"pod", "container"} for name in FOREIGN if name.startswith("container")}
SPARK = {
    name: {"application_id", "application_name", "executor_id", "app"}
    for name in (
        "metrics_executor_JVMHeapMemory_bytes",
        "metrics_executor_ProcessTreePythonRSSMemory_bytes",
        "metrics_executor_activeTasks",
        "metrics_executor_completedTasks_total",
        "metrics_executor_failedTasks_total",
        "metrics_executor_maxTasks",
        "metrics_executor_totalCores",
        "metrics_executor_totalDuration_seconds_total",
        "metrics_executor_totalGCTime_seconds_total",
        "metrics_executor_totalShuffleWrite_bytes_total",
    )
} | {
    f"metrics_spark_driver_spark_streaming_.+_{name}_Value": {"type", "app", "query"}
    for name in ("inputRate_total", "latency", "processingRate_total", "states_rowsTotal")
}
"""The series of Spark, or patterns of them, with their labels. The PodMonitor and the queries add `app` and `query`."""
FOREIGN |= dict.fromkeys(SPARK, "Spark")
FOREIGN_LABELS |= SPARK
TARGET_LABELS = {"job", "namespace", "cluster", "instance"}
"""Labels that Prometheus adds to all series of a target."""
CHOICES = {"namespace", "cluster", "instance", "queue", "app"}

NAME = re.compile(r"\b(disque[_:][\w:]+|process_\w+|metrics_\w+|(?:kubelet|container)_\w+|up|ALERTS)\b(?![\"(])")


def of_dashboards() -> Iterator[tuple[str, str]]:
    """Yield each query with its place."""
    for board in BOARDS:
        for panel in board.panels():
            for query in panel.queries:
                yield f"{board.uid}: {panel.title}", query.expr


def of_variables() -> Iterator[tuple[str, Variable]]:
    """Yield each variable with the UID of its dashboard."""
    for board in BOARDS:
        for variable in board.variables:
            yield board.uid, variable


def of_all() -> Iterator[tuple[str, str]]:
    """Yield each query of dashboards, variables and alerts with its place."""
    yield from of_dashboards()
    for uid, variable in of_variables():
        yield f"{uid}: ${variable.name}", variable.values
    for alert in ALERTS:
        yield alert.name, alert.expr
    for record in RECORDS:
        if record.kept:  # the others are numbers
            yield record.name, record.expr


def without_texts(query: str) -> str:
    """Return the query with empty strings."""
    return re.sub(r'"[^"]*"', '""', query)


def names_in(query: str) -> set[str]:
    """Return the names of the series of a query, or the pattern of their names."""
    return {*NAME.findall(without_texts(query)), *re.findall(r'__name__=~"([^"]*)"', query)}


def operator_series() -> dict[str, set[str]]:
    """Return the series of the operator with their labels, after each event has happened once."""
    metrics = Metrics()
    metrics.watch(queue=lambda: 0.0, overdue_s=lambda: 0.0, lease=lambda: 1.0)
    metrics.round("ns", "c", 0.1, failed=True)
    metrics.request("create", "Pod", 201)
    metrics.command(("CLUSTER", "MEET"))
    metrics.event("Pod")
    metrics.revert(("n", "c"), "Service")
    drain = {"jobsLeft": 1, "secondsLeft": 1}
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "reason": "AllMembersConnected"}],
        "drain": drain,
        "backup": {"lastSuccessTime": "2026-07-14T02:00:41Z", "lastJobs": 1, "lastBytes": 1},
    }
    metrics.cluster("ns", "c", status, paused=False)
    samples = (sample for family in metrics.registry.collect() for sample in family.samples)
    return {sample.name: set(sample.labels) for sample in samples if not sample.name.endswith("_created")}


def declared() -> dict[str, set[str]]:
    """Return the series of the broker, the operator and the recording rules with their labels."""
    series = {
        name: {*catalog.labels_of(metric), *(("le",) if metric.kind == "histogram" else ())}
        for metric in catalog.ALL
        for name in metric.series
    }
    return operator_series() | series | {record.name: record.all_labels for record in RECORDS}


def with_choices(query: str) -> str:
    """Return the query as Grafana sends it with all values selected."""
    for word, selector in CHOSEN.items():
        query = query.replace(word, selector)
    for name in CHOICES:
        query = query.replace(f"${name}", ".*")
    return query.replace("$__rate_interval", "5m")
