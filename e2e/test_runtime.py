"""The operator as a program: its cost while idle, its permissions, and its metrics."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families as families

from disque_operator import names
from disque_operator.observe import LISTED
from e2e.support import operators
from e2e.support.brokers import poll
from e2e.support.cluster import DisqueCluster
from e2e.support.kube import Json, Kube
from e2e.support.load import Load
from e2e.support.operators import PLAIN
from e2e.support.settings import Settings
from e2e.support.times import Times

QUIET_S: Final = 20
IDLE_S: Final = 60
FORGET_S: Final = 60
"""A round that began before the deletion ends first; it may wait for brokers that are gone."""
METRICS_PORT: Final = 8081
IDLE_REQUESTS: Final = 2 * len((names.KIND, *LISTED, "PodDisruptionBudget"))
"""API requests per minute without the Lease: the lists of all kinds, twice in a minute at most, and of the budgets of
others. None for a cluster."""
API_REQUESTS: Final = "disque_operator_api_requests_total"
DISPENSABLE: Final = {"Node", "StorageClass"}
"""Kinds without a namespace that the operator of one namespace may not read, and does without."""
IDLE_CPU: Final = 0.05
"""Cores; the operator queries the brokers twice a minute."""

Figures = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def figures(kube: Kube, operator: Json) -> Figures:
    """Return the metrics of the operator's only pod."""
    namespace = operator["metadata"]["namespace"]
    [pod] = kube.all("Pod", namespace, operators.SELECTOR)
    with contextlib.closing(kube.forward(pod["metadata"]["name"], namespace, METRICS_PORT)) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        answer = b""
        while chunk := connection.recv(1 << 16):
            answer += chunk
    page = answer.partition(b"\r\n\r\n")[2].decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families(page)
        for sample in family.samples
    }


def total(found: Figures, name: str, **labels: str) -> float:
    """Return the sum of the series with these labels."""
    return sum(value for (known, of), value in found.items() if known == name and labels.items() <= dict(of).items())


@pytest.mark.alone
def test_cluster_with_traffic_causes_few_requests_and_little_cpu_use(
    cluster: DisqueCluster, kube: Kube, load: Load, operator: Json, times: Times
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    with load:
        time.sleep(QUIET_S)  # events of the last change may still be written
        before = figures(kube, operator)
        time.sleep(IDLE_S)
        after = figures(kube, operator)

    def increase(name: str, **labels: str) -> float:
        return total(after, name, **labels) - total(before, name, **labels)

    assert increase("disque_operator_writes_total") <= 1, "counters of the status, every five minutes"
    requests = {
        tuple(dict(series).values()): value - before.get((name, series), 0)
        for (name, series), value in after.items()
        if name == API_REQUESTS and dict(series)["kind"] != "Lease"
        if value != before.get((name, series), 0)
    }
    assert not any("get" in series for series in requests), requests
    assert sum(requests.values()) <= IDLE_REQUESTS, requests
    assert increase("disque_operator_reconcile_seconds_count", cluster=cluster.name) >= 1, "it still reconciles"
    assert increase("process_cpu_seconds_total") <= IDLE_CPU * IDLE_S
    times.note("operator_cpu_of_idle_cluster", round(increase("process_cpu_seconds_total") / IDLE_S, 4))
    times.note("operator_memory_mib", round(total(after, "process_resident_memory_bytes") / (1 << 20), 1))


def test_metrics_show_the_state_of_a_cluster_and_no_forbidden_requests(
    cluster: DisqueCluster, kube: Kube, operator: Json
) -> None:
    cluster.create(replicas=2)
    cluster.wait_running(2)
    cluster.patch(replicas=1)
    cluster.wait_running(1)
    found = figures(kube, operator)
    labels = {"namespace": cluster.namespace, "cluster": cluster.name}
    assert total(found, "disque_operator_cluster_phase", phase="Running", **labels) == 1
    assert total(found, "disque_operator_cluster_members", state="ready", **labels) == 1
    assert total(found, "disque_operator_reconcile_errors_total", **labels) == 0
    assert total(found, "disque_operator_lease_held") == 1
    for verb in ("get", "list"):  # writes are forbidden in namespaces that other tests delete
        assert total(found, API_REQUESTS, verb=verb, code="403") == 0
    cluster.delete()
    kube.wait("Pod", cluster.namespace, lambda pods: not pods, "all pods are gone", within_s=60)
    kube.wait("StatefulSet", cluster.namespace, lambda sets: not sets, "the StatefulSet is gone", within_s=60)

    def is_forgotten() -> bool:
        return not any(labels.items() <= dict(series).items() for _, series in figures(kube, operator))

    poll(is_forgotten, "the operator has no metrics of the deleted cluster", FORGET_S)


@pytest.mark.alone
def test_operator_of_one_namespace_needs_permissions_only_there(
    namespaces: Callable[[], str], kube: Kube, settings: Settings, operator: Json
) -> None:
    mine, other = namespaces(), namespaces()
    clusters = [DisqueCluster(kube, namespace, "shop", settings.image) for namespace in (mine, other)]
    with operators.stopped(kube, operator):
        for manifest in operators.documents(PLAIN / "one-namespace"):
            manifest["metadata"]["namespace"] = mine
            kube.apply(operators._with_image(manifest, settings.operator_image))
        deployment = kube.get("Deployment", "disque-operator", mine)
        operators.wait_available(kube, deployment, 1)
        for one in clusters:
            one.create(replicas=2)
        clusters[0].wait_running(2)
        found = figures(kube, deployment).items()
        requests = [dict(series) for (name, series), value in found if name == API_REQUESTS and value]
        assert {one["kind"] for one in requests if one["code"] == "403"} <= DISPENSABLE
        [lease] = kube.all("Lease", mine)
        assert lease["spec"]["holderIdentity"].startswith("disque-operator-")
        assert not clusters[1].status
        kube.delete("Deployment", "disque-operator", mine)
