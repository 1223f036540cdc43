"""The operator dies at any step, is one of two, is idle, and puts back what a hand changed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from e2e.support import operators
from e2e.support.cluster import DisqueCluster
from e2e.support.kube import Json, Kube
from e2e.support.load import Filling, Load
from e2e.support.operators import OperatorProcess
from e2e.support.settings import Settings
from e2e.support.times import Times
from e2e.support.wire import Wire

QUIET_S = 20
"""An operator that did nothing for so long has nothing to do."""
IDLE_S = 60
MOST_LIVES = 60
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
"""Kinds that nobody writes to while a cluster is idle."""


def need_pods(cluster: DisqueCluster) -> None:
    """An operator that runs here has to reach the brokers."""
    if not operators.reaches_pods(cluster):
        pytest.skip("pods can not be reached from this machine")


@pytest.mark.alone
@pytest.mark.timeout(900)
def test_an_operator_that_dies_after_every_step_of_a_shrink_still_ends_it(
    cluster: DisqueCluster, kube: Kube, settings: Settings, operator: Json, results: Path, times: Times
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    need_pods(cluster)
    ids = cluster.ids()
    with Filling(kube, cluster, settings.image, JOBS) as filling, operators.away(kube, operator):
        cluster.patch(replicas=2)
        died = operators.lives(
            cluster.namespace,
            settings.image,
            results / "operator.log",
            kube.kubeconfig,
            quiet_s=QUIET_S,
            most=MOST_LIVES,
        )
        times.note("operators_that_died_in_a_shrink", died)
        assert died >= 3, "LEAVING, the StatefulSet and FORGET are steps at least"
        assert cluster.pod_names() == ["shop-0", "shop-1"]
        cluster.wait_formed(2)
        filling.consume()
        account = filling.settle()
    assert cluster.ids() == {pod: ids[pod] for pod in ("shop-0", "shop-1")}, "nobody else was forgotten"
    account.check(at_least=5_000)
    assert account.duplicates <= 5, str(account)
    cluster.wait_running(2)


@pytest.mark.alone
@pytest.mark.timeout(900)
def test_an_operator_that_dies_after_every_step_of_an_upgrade_still_ends_it(
    cluster: DisqueCluster, kube: Kube, load: Load, settings: Settings, operator: Json, results: Path, times: Times
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    need_pods(cluster)
    ids = cluster.ids()
    with load, operators.away(kube, operator):
        cluster.patch(image=settings.next_image)
        died = operators.lives(
            cluster.namespace,
            settings.image,
            results / "operator.log",
            kube.kubeconfig,
            quiet_s=QUIET_S,
            most=MOST_LIVES,
        )
        times.note("operators_that_died_in_an_upgrade", died)
        assert died >= 4, "the StatefulSet and three pods are steps"
        cluster.wait_formed(3)
        account = load.settle()
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {settings.next_image}
    assert cluster.ids() == ids
    account.check(at_least=500)
    cluster.wait_running(3)


@pytest.mark.alone
def test_of_two_operators_the_second_takes_over_when_the_first_dies(
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
        times.since("grown_after_the_operator_was_killed_s", begin_s)
    finally:
        operators.scale(kube, operator, 1)
        operators.wait_available(kube, operator, 1)


@pytest.mark.alone
def test_an_operator_that_is_cut_off_stops_and_another_one_acts(
    cluster: DisqueCluster, kube: Kube, settings: Settings, operator: Json, results: Path
) -> None:
    cluster.create(replicas=1)
    cluster.wait_running(1)
    need_pods(cluster)
    first_log, second_log = results / "first.log", results / "second.log"
    with operators.away(kube, operator), Wire(kube.kubeconfig, results) as wire:
        first = OperatorProcess(cluster.namespace, settings.image, first_log, wire.kubeconfig, identity="first")
        second = None
        try:
            wait_holder(kube, cluster.namespace, "first")
            second = OperatorProcess(cluster.namespace, settings.image, second_log, kube.kubeconfig, identity="second")
            cluster.patch(replicas=2)
            cluster.wait_running(2)
            wire.cut()
            wait_holder(kube, cluster.namespace, "second")
            cluster.patch(replicas=3)
            cluster.wait_running(3)
            wire.mend()
            cluster.patch(replicas=2)
            cluster.wait_running(2)
            wait_holder(kube, cluster.namespace, "second")
            assert not first.is_dead(), operators.tail(first_log)
        finally:
            first.kill()
            if second is not None:
                second.kill()


def wait_holder(kube: Kube, namespace: str, identity: str) -> None:
    """Until the operator of this name is the one that acts."""

    def held(leases: list[Json]) -> bool:
        return any(lease["spec"].get("holderIdentity") == identity for lease in leases)

    kube.wait("Lease", namespace, held, f"{identity} holds the lease", within_s=TAKEOVER_S)


def test_an_idle_operator_writes_nothing(cluster: DisqueCluster, kube: Kube) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    time.sleep(QUIET_S)  # figures of the last change may still be on their way into the status
    before = versions(kube, cluster.namespace)
    time.sleep(IDLE_S)
    assert versions(kube, cluster.namespace) == before


def versions(kube: Kube, namespace: str) -> dict[tuple[str, str], str]:
    """The version of each object of a namespace: it changes with every write."""
    return {
        (kind, item["metadata"]["name"]): item["metadata"]["resourceVersion"]
        for kind in WATCHED
        for item in kube.all(kind, namespace)
    }


def test_what_a_hand_changed_is_put_back(cluster: DisqueCluster, kube: Kube) -> None:
    cluster.create(replicas=2)
    cluster.wait_running(2)
    namespace = cluster.namespace
    password = cluster.password
    uids = [cluster.uid(ordinal) for ordinal in range(2)]

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
        "the configuration is as it was",
        name="shop-config",
        within_s=TAKEOVER_S,
    )
    cluster.wait_running(2)
    assert cluster.uid(0) == uids[0]
    kube.delete("Secret", "shop-auth", namespace)
    kube.wait("Secret", namespace, bool, "there is a password again", name="shop-auth", within_s=TAKEOVER_S)
    cluster.wait_running(2)
    assert cluster.password != password
