"""The operator crashes after every action, fails over, stays idle, and reverts manual changes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from e2e.support import operators
from e2e.support.api_proxy import ApiProxy
from e2e.support.brokers import poll
from e2e.support.cluster import DisqueCluster, condition
from e2e.support.kube import Json, Kube
from e2e.support.load import Backlog, Load
from e2e.support.operators import OperatorProcess
from e2e.support.settings import Settings
from e2e.support.times import Times

IDLE_S = 60
TAKEOVER_S = 60
JOBS = {"plain": 5_000, "far": 100, "once": 100}
WATCHED = (
    "ConfigMap",
    "DisqueCluster",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
)
"""Kinds of objects that the operator must not write while a cluster is idle."""


def require_pod_network(cluster: DisqueCluster) -> None:
    """Skip the test if an operator on this machine cannot reach the brokers."""
    if not operators.reaches_pods(cluster):
        pytest.skip("pods cannot be reached from this machine")


@pytest.mark.alone
@pytest.mark.timeout(900)
def test_scale_in_completes_when_the_operator_crashes_after_every_action(
    cluster: DisqueCluster, kube: Kube, settings: Settings, operator: Json, results: Path, times: Times
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    with Backlog(kube, cluster, settings.image, JOBS) as backlog, operators.stopped(kube, operator):
        cluster.patch(replicas=2)
        crashes = operators.crash_repeatedly(
            kube,
            cluster,
            results / "operator.log",
            image=settings.image,
            operator_image=settings.operator_image,
        )
        times.note("operator_crashes_during_scale_in", crashes)
        assert crashes >= 3, "LEAVING, the StatefulSet and FORGET are separate actions"
        assert cluster.pod_names() == ["shop-0", "shop-1"]
        cluster.wait_formed(2)
        backlog.consume()
        account = backlog.settle()
    assert cluster.ids() == {pod: ids[pod] for pod in ("shop-0", "shop-1")}, "no other node was forgotten"
    account.check(at_least=5_000)
    assert account.duplicates <= 5, str(account)
    cluster.wait_running(2)


@pytest.mark.alone
@pytest.mark.timeout(900)
def test_upgrade_completes_when_the_operator_crashes_after_every_action(
    cluster: DisqueCluster, kube: Kube, load: Load, settings: Settings, operator: Json, results: Path, times: Times
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    with load, operators.stopped(kube, operator):
        cluster.patch(image=settings.next_image)
        crashes = operators.crash_repeatedly(
            kube,
            cluster,
            results / "operator.log",
            image=settings.image,
            operator_image=settings.operator_image,
        )
        times.note("operator_crashes_during_upgrade", crashes)
        assert crashes >= 4, "the StatefulSet and three pods are separate actions"
        cluster.wait_formed(3)
        account = load.settle()
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {settings.next_image}
    assert cluster.ids() == ids
    account.check(at_least=500)
    cluster.wait_running(3)


@pytest.mark.alone
def test_standby_operator_takes_over_when_the_leader_dies(
    cluster: DisqueCluster, kube: Kube, operator: Json, times: Times
) -> None:
    cluster.create(replicas=1)
    cluster.wait_running(1)
    namespace = operator["metadata"]["namespace"]
    operators.scale(kube, operator, 2)
    try:
        operators.wait_available(kube, operator, 2)
        [lease] = kube.all("Lease", namespace)
        holder = lease["spec"]["holderIdentity"]
        kube.delete("Pod", holder, namespace, grace_s=0)
        begin_s = cluster.patch(replicas=2)
        cluster.wait_running(2, within_s=TAKEOVER_S)
        times.since("scaled_out_after_operator_was_killed_s", begin_s)
    finally:
        operators.scale(kube, operator, 1)
        operators.wait_available(kube, operator, 1)


@pytest.mark.alone
def test_partitioned_operator_stops_and_another_takes_over(
    cluster: DisqueCluster, kube: Kube, settings: Settings, operator: Json, results: Path
) -> None:
    cluster.create(replicas=1)
    cluster.wait_running(1)
    require_pod_network(cluster)
    home = operator["metadata"]["namespace"]
    first_log, second_log = results / "first.log", results / "second.log"
    with operators.stopped(kube, operator), ApiProxy(kube.kubeconfig, results) as proxy:
        first = OperatorProcess(cluster.namespace, settings.image, first_log, proxy.kubeconfig, identity="first")
        second = None
        try:
            wait_holder(kube, home, "first")
            second = OperatorProcess(cluster.namespace, settings.image, second_log, kube.kubeconfig, identity="second")
            cluster.patch(replicas=2)
            cluster.wait_running(2)
            proxy.cut()
            wait_holder(kube, home, "second")
            cluster.patch(replicas=3)
            cluster.wait_running(3)
            proxy.restore()
            cluster.patch(replicas=2)
            cluster.wait_running(2)
            wait_holder(kube, home, "second")
            assert not first.is_dead(), operators.tail(first_log)
        finally:
            first.kill()
            if second is not None:
                second.kill()


def wait_holder(kube: Kube, namespace: str, identity: str) -> None:
    """Wait until the operator with this identity holds the Lease."""

    def held(leases: list[Json]) -> bool:
        return any(lease["spec"].get("holderIdentity") == identity for lease in leases)

    kube.wait("Lease", namespace, held, f"{identity} holds the lease", within_s=TAKEOVER_S)


@pytest.mark.long
def test_idle_operator_writes_nothing(cluster: DisqueCluster, kube: Kube) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    time.sleep(operators.QUIET_S)  # the status may still be updated after the last change
    before = versions(kube, cluster.namespace)
    time.sleep(IDLE_S)
    assert versions(kube, cluster.namespace) == before


def versions(kube: Kube, namespace: str) -> dict[tuple[str, str], str]:
    """Return the resource version of each object in a namespace; every write changes it."""
    return {
        (kind, item["metadata"]["name"]): item["metadata"]["resourceVersion"]
        for kind in WATCHED
        for item in kube.all(kind, namespace)
    }


def test_manual_changes_are_reverted(cluster: DisqueCluster, kube: Kube) -> None:
    cluster.create(replicas=2)
    cluster.wait_running(2)
    namespace = cluster.namespace
    password = cluster.password
    first = cluster.uid(0)

    kube.delete("Service", "shop", namespace)
    kube.delete("Service", "shop-members", namespace)
    kube.delete("PodDisruptionBudget", "shop", namespace)
    kube.delete("NetworkPolicy", "shop", namespace)
    kube.patch("ConfigMap", "shop-config", namespace, {"data": {"disque.conf": "port 1\n"}})
    kube.patch("StatefulSet", "shop", namespace, {"spec": {"replicas": 1}})

    for kind, name in (
        ("Service", "shop"),
        ("Service", "shop-members"),
        ("PodDisruptionBudget", "shop"),
        ("NetworkPolicy", "shop"),
    ):
        kube.wait(kind, namespace, bool, f"{kind} {name} is back", name=name, within_s=TAKEOVER_S)
    kube.wait(
        "ConfigMap",
        namespace,
        lambda found: any("port 7711" in item["data"]["disque.conf"] for item in found),
        "the configuration is restored",
        name="shop-config",
        within_s=TAKEOVER_S,
    )
    cluster.wait_running(2)
    kube.delete("Secret", "shop-auth", namespace)
    kube.wait("Secret", namespace, bool, "the Secret is restored", name="shop-auth", within_s=TAKEOVER_S)
    cluster.wait_running(2)
    assert cluster.password == password
    assert cluster.uid(0) == first, "the pod above the lower number of replicas may be replaced, but no other one"


def test_field_that_is_changed_back_is_reported_and_applied_with_backoff(cluster: DisqueCluster, kube: Kube) -> None:
    cluster.create(replicas=1)
    cluster.wait_running(1)

    def is_reported() -> bool:
        if "port 7711" in kube.get("ConfigMap", "shop-config", cluster.namespace)["data"]["disque.conf"]:
            kube.patch("ConfigMap", "shop-config", cluster.namespace, {"data": {"disque.conf": "port 1\n"}})
        return condition(cluster.status, "Degraded").get("reason") == "FieldReverted"

    poll(is_reported, "the field is reported", within_s=60)
    assert "data.disque.conf of ConfigMap shop-config" in condition(cluster.status, "Degraded")["message"]
    cluster.wait_running(1, within_s=60)
