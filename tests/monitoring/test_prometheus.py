"""A real Prometheus scrapes a real cluster under load: every panel has data, and alerts fire for faults."""

from __future__ import annotations

import contextlib
import re
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from dashboards import uids
from dashboards.alerts.all import ALERTS, RECORDS
from dashboards.alerts.files import RULES
from dashboards.alerts.slo import OBJECTIVES, bad_share
from dashboards.all import BOARDS
from dashboards.model import Board
from disque_operator.metrics import Metrics
from disqued.client import ResponseError
from disqued.testing.ports import LOOPBACK, free_port
from monitoring.queries import FOREIGN, names_in, with_choices
from support.cluster import RealNode
from support.nodeclient import NodeClient
from support.prometheus import Prometheus, with_short_durations
from support.wires import WiredCluster, Wires

EMPTY_HERE = {
    uids.OVERVIEW: set(),
    uids.ORDERED: set(),
    uids.QUEUES: {"Paused", "Dead letters", "Waiting for other jobs"},
    uids.CLUSTER: {"Loading or leaving", "CPU throttling"},
    uids.MEMORY_DISK: {"Free space on volumes", "Problems"},
    uids.SLO: set(),
    uids.OPERATOR: {"Unhealthy conditions", "Paused", "Phases"},
    uids.SPARK: {
        panel.title
        for board in BOARDS
        for panel in board.panels()
        if board.uid == uids.SPARK and any("metrics_" in query.expr for query in panel.queries)
    },
}
"""Panels without data in a healthy cluster outside Kubernetes. `test_spark_metrics` tests the series of Spark."""
BY_CHANCE = {"Firing alerts, with runbooks", "With workers", "Held back"}
"""Panels that the load may give data at any time: an alert fires, a job is scraped while it is with a worker, a queue
waits for tokens."""
NOT_HERE = {
    "kubelet_volume_stats_available_bytes": "there is no Kubernetes",
    "kubelet_volume_stats_capacity_bytes": "there is no Kubernetes",
    "disque_tls_certificate_expiry_timestamp_seconds": "the nodes use no TLS",
}
"""Series of rules that are missing in a healthy cluster, and why."""
OF_THE_LOAD = {
    "DisqueRedeliveriesHigh": "each round of load rejects some jobs",
    "DisqueOperatorIdle": "the simulated operator only reconciles when a test says so",
}
"""Alerts that may fire in a healthy cluster, and why."""
WARM = {
    "there are rates of all nodes": "count(rate(disque_aof_fsync_duration_seconds_count[10s]) > 0) > 2",
    "nodes have compared their clocks": "disque_clock_skew_seconds >= 0",
    "jobs have moved": "sum(rate(disque_jobs_imported_total[1m])) > 0",
    "there are rates of the operator": "rate(disque_operator_reconcile_seconds_count[10s])",
    "every objective is recorded": f"count({bad_share('1h')}) == {len(OBJECTIVES)}",
}
"""Conditions to wait for before the first test."""
PAUSE_S = 0.02
"""The pause between two rounds of load, which leaves time for other processes."""


@dataclass
class Stage:
    """A cluster under load, a Prometheus that scrapes it, and metrics of a simulated operator."""

    cluster: WiredCluster
    wires: Wires
    prometheus: Prometheus
    operator: Metrics

    def fires(self, *alerts: str) -> None:
        self.prometheus.until(lambda: set(alerts) <= self.prometheus.firing(), f"{alerts} fire")

    def resolves(self, *alerts: str) -> None:
        self.prometheus.until(lambda: not set(alerts) & self.prometheus.firing(), f"{alerts} stop firing")


def say(node: RealNode, *words: bytes | str | int) -> object:
    """Return the reply, which may be an error: some requests are expected to fail."""
    try:
        return node.call(*words)
    except (ResponseError, EOFError, OSError) as error:
        return error


def turn(one: NodeClient, two: NodeClient, number: int) -> None:
    """Add, deliver, acknowledge and reject some jobs."""
    replies = one.pipeline(
        [
            ("ADDJOB", "mail", "body", 500, "REPLICATE", 2),
            ("ADDJOB", f"queue-{number % 5}", "body", 500, "REPLICATE", 2, "ASYNC", "PRIORITY", number % 3),
            ("ADDJOB", "later", "body", 500, "DELAY", 5, "TTL", 60),
            ("ADDJOB", "mail", "body", 500, "RETRY", 0, "REPLICATE", 1),
            ("NOSUCHCOMMAND",),
        ]
    )
    found = two.pipeline(
        [("GETJOB", "NOHANG", "COUNT", 5, "FROM", "mail", "later", *(f"queue-{i}" for i in range(5)))]
    )[0]
    if isinstance(found, list):
        ids = [job[1] for job in found]
        two.pipeline([("NACK", ids[0]), ("ACKJOB", *ids)])
    two.pipeline([("ADDJOB", "steps", "body", 500)])
    steps = two.pipeline([("GETJOB", "NOHANG", "FROM", "steps")])[0]
    if isinstance(steps, list):
        two.pipeline([("ACKJOB", steps[0][1])])
    first = replies[0]
    if isinstance(first, bytes) and number % 3 == 0:
        one.pipeline([("ENQUEUE", first), ("SHOW", first), ("FASTACK", first)])


def load(nodes: list[RealNode], ended: threading.Event) -> None:
    number = 0
    say(nodes[0], "CLUSTER", "ORDERED", "INIT", nodes[0].id)
    say(nodes[0], "QNEW", "steps", "ORDERED")
    say(nodes[0], "QCONF", "queue-0", "SET", "rate", 1000, "inflight", 1000)
    while not ended.wait(PAUSE_S):
        with contextlib.suppress(OSError, EOFError), contextlib.ExitStack() as stack:
            one, two = (stack.enter_context(contextlib.closing(node.connect())) for node in nodes)
            waiting = stack.enter_context(contextlib.closing(nodes[1].connect()))
            waiting.send("GETJOB", "FROM", "nothing-comes")
            while not ended.wait(PAUSE_S):
                turn(one, two, number)
                number += 1


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed")
    folder = tmp_path_factory.mktemp("stage")
    http_port, operator_port = free_port(), free_port()
    operator = Metrics()
    operator.watch(queue=lambda: 0.0, overdue_s=lambda: 0.0, lease=lambda: 1.0)
    operator_now(operator, phase="Draining")
    directives = ("--http-port", str(http_port), "--appendonly", "yes")
    with contextlib.ExitStack() as stack:
        stack.callback(operator.serve(operator_port))
        wires = stack.enter_context(Wires())
        cluster = stack.enter_context(WiredCluster(folder, wires, 3, *directives))
        targets = {
            "disque": [f"{node.host}:{http_port}" for node in cluster.nodes],
            "disque-operator": [f"{LOOPBACK}:{operator_port}"],
        }
        jobs = [
            {
                "job_name": name,
                "honor_labels": True,
                "static_configs": [{"targets": places, "labels": {"namespace": "n", "cluster": "c"}}],
            }
            for name, places in targets.items()
        ]
        prometheus = stack.enter_context(
            Prometheus(folder / "prometheus", jobs, with_short_durations(RULES.read_text()))
        )
        ended = threading.Event()
        thread = threading.Thread(target=load, args=(cluster.nodes[:2], ended))
        thread.start()
        stack.callback(thread.join)
        stack.callback(ended.set)
        for what, query in WARM.items():
            prometheus.until(partial(prometheus.has, query), what)
        yield Stage(cluster, wires, prometheus, operator)


def operator_now(metrics: Metrics, *, phase: str) -> None:
    """Record the metrics of an operator for a cluster."""
    metrics.round("n", "c", 0.1, failed=False)
    metrics.request("create", "Pod", 201)
    metrics.command(("CLUSTER", "MEET"))
    metrics.event("Pod")
    metrics.revert(("n", "c"), "Service")
    drain = {"jobsLeft": 5, "secondsLeft": 1}
    conditions = [
        {"type": "Ready", "status": "True", "reason": "AllMembersConnected"},
        {"type": "Draining", "status": "True", "reason": "Transferring"},
    ]
    backup = {"lastSuccessTime": "2026-01-31T12:00:00Z", "lastJobs": 7, "lastBytes": 4096}
    status = {"phase": phase, "conditions": conditions, "drain": drain, "replicas": 3, "readyReplicas": 3}
    status |= {"backup": backup}
    metrics.cluster("n", "c", status, paused=False)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_every_panel_has_data_or_explains_why_not(stage: Stage, board: Board) -> None:
    ask = stage.prometheus.ask
    operator_now(stage.operator, phase="Draining")
    silent = [panel for panel in board.panels() if not all(ask(with_choices(query.expr)) for query in panel.queries)]
    assert {panel.title for panel in silent} - BY_CHANCE == EMPTY_HERE[board.uid]
    assert [panel.title for panel in silent if not panel.empty] == [], "these panels do not explain why"


def test_every_broker_series_of_the_dashboards_exists(stage: Stage) -> None:
    asked = {
        name for board in BOARDS for panel in board.panels() for query in panel.queries for name in names_in(query.expr)
    }
    missing = [name for name in sorted(asked - FOREIGN.keys()) if not stage.prometheus.ask(name)]
    assert missing == ["disque_tls_certificate_refused"], "the nodes use no TLS"


def test_prometheus_evaluates_every_rule(stage: Stage) -> None:
    def all_evaluated() -> bool:
        return all(rule["health"] != "unknown" for rule in stage.prometheus.rules())

    stage.prometheus.until(all_evaluated, "every rule was evaluated")
    rules = stage.prometheus.rules()
    assert {rule["name"] for rule in rules} == {alert.name for alert in ALERTS} | {record.name for record in RECORDS}
    wrong = {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok" or rule.get("lastError")}
    assert wrong == {}


def test_every_series_of_the_rules_exists_or_is_explained(stage: Stage) -> None:
    asked = {name for alert in ALERTS for name in names_in(alert.expr)}

    def missing() -> set[str]:
        return {name for name in asked if not stage.prometheus.ask(name)}

    stage.prometheus.until(lambda: missing() <= NOT_HERE.keys(), "only series that cannot exist here are missing")
    assert missing() == NOT_HERE.keys()


def test_quantiles_can_exceed_the_thresholds_of_alerts(stage: Stage) -> None:
    compared = [
        (alert.name, *found)
        for alert in ALERTS
        for found in re.findall(r"histogram_quantile\(.*?(\w+_bucket).*\) > ([\d.]+)", alert.expr)
    ]
    assert len(compared) > 1
    for alert, name, limit in compared:
        ends = {float(series["metric"]["le"]) for series in stage.prometheus.ask(name)} - {float("inf")}
        assert max(ends) > float(limit), f"{alert} would never fire: the last bucket ends before"


@pytest.mark.slow
def test_no_alert_fires_in_a_healthy_cluster(stage: Stage) -> None:
    stage.prometheus.until(
        lambda: stage.prometheus.firing() <= OF_THE_LOAD.keys(), "no alert fires except those that the load causes"
    )


@pytest.mark.slow
def test_alert_fires_for_queue_without_workers(stage: Stage) -> None:
    node = stage.cluster.nodes[2]
    node.call("ADDJOB", "forgotten", "body", 500)
    stage.fires("DisqueQueueStuck", "DisqueQueueNoConsumers")
    node.call("GETJOB", "FROM", "forgotten")
    stage.resolves("DisqueQueueStuck")


@pytest.mark.slow
def test_alert_fires_for_paused_queue(stage: Stage) -> None:
    node = stage.cluster.nodes[2]
    node.call("PAUSE", "mail", "in")
    stage.fires("DisqueQueuePaused")
    node.call("PAUSE", "mail", "none")
    stage.resolves("DisqueQueuePaused")


@pytest.mark.slow
def test_alerts_fire_for_expiring_and_redelivered_jobs(stage: Stage) -> None:
    def both_fire() -> bool:
        say(stage.cluster.nodes[2], "ADDJOB", "short", "body", 500, "TTL", 1)
        return {"DisqueJobsExpiring", "DisqueRedeliveriesHigh"} <= stage.prometheus.firing()

    stage.prometheus.until(both_fire, "both alerts fire")


@pytest.mark.slow
def test_alerts_fire_for_full_memory(stage: Stage) -> None:
    node = stage.cluster.nodes[2]
    limit = node.call("CONFIG", "GET", "maxmemory")[1]
    node.call("CONFIG", "SET", "maxmemory", "1000")
    stage.fires("DisqueMemoryHigh", "DisqueMemoryCritical")
    node.call("CONFIG", "SET", "maxmemory", limit)
    stage.resolves("DisqueMemoryHigh", "DisqueMemoryCritical")


@pytest.mark.slow
def test_alerts_fire_when_the_file_cannot_be_written(stage: Stage) -> None:
    node = stage.cluster.nodes[2]
    old = resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
    client = node.connect()
    client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 1)
    stage.fires("DisqueAOFErrors")
    resource.prlimit(node.pid, resource.RLIMIT_FSIZE, old)
    stage.resolves("DisqueAOFErrors")
    client.close()


@pytest.mark.slow
def test_alerts_fire_for_partitioned_cluster(stage: Stage) -> None:
    one, two, three = stage.cluster.nodes
    stage.wires.halve([one, two], [three])

    def fires() -> bool:
        say(three, "ADDJOB", "mail", "body", 100, "REPLICATE", 2)
        wanted = {"DisqueClusterPartitioned", "DisqueNodeUnreachable", "DisqueReplicationFailing"}
        return wanted <= stage.prometheus.firing()

    stage.prometheus.until(fires, "the partition alerts fire")
    stage.wires.repair()
    stage.resolves("DisqueClusterPartitioned", "DisqueNodeUnreachable")


@pytest.mark.slow
def test_alerts_fire_for_degraded_cluster(stage: Stage) -> None:
    ways: dict[str, Callable[[], None]] = {
        "DisqueClusterDegraded": lambda: operator_now(stage.operator, phase="Degraded"),
        "DisqueUpgradeStuck": lambda: operator_now(stage.operator, phase="Upgrading"),
        "DisqueOperatorErrors": lambda: stage.operator.round("n", "c", 1.0, failed=True),
        "DisqueFieldReverted": lambda: stage.operator.revert(("n", "c"), "Service"),
    }
    for alert, provoke in ways.items():

        def fires(alert: str = alert, provoke: Callable[[], None] = provoke) -> bool:
            provoke()
            return alert in stage.prometheus.firing()

        stage.prometheus.until(fires, f"{alert} fires")
    operator_now(stage.operator, phase="Running")


@pytest.mark.slow
def test_alerts_fire_for_killed_node(stage: Stage) -> None:
    node = stage.cluster.nodes[2]
    node.kill()
    stage.fires("DisqueDown", "DisqueNodeUnreachable")
    stage.resolves("DisqueClusterPartitioned")
    node.restart()
    stage.resolves("DisqueDown", "DisqueNodeUnreachable")
