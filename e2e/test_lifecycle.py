"""Clusters come, sleep, wake and go."""

from __future__ import annotations

import time

import pytest

from e2e.support.cluster import DisqueCluster
from e2e.support.kube import Json, Kube
from e2e.support.load import Filling
from e2e.support.settings import Settings
from e2e.support.times import Times

NEW_CLUSTER_S = 60
NAMESPACE_S = 60
JOBS = {"plain": 300, "far": 50, "once": 100}


def test_three_members_find_each_other(cluster: DisqueCluster, times: Times) -> None:
    begin_s = cluster.create(replicas=3)
    cluster.wait_running(3, within_s=NEW_CLUSTER_S)
    times.since("new_cluster_of_3_ready_s", begin_s)

    status = cluster.status
    assert {member["pod"]: member["nodeId"] for member in status["members"]} == cluster.ids()
    assert {member["state"] for member in status["members"]} == {"ready"}
    assert status["endpoint"].startswith(cluster.service)
    told = [(event["reason"], event.get("message")) for event in cluster.events()]
    assert told, "what happened is told"
    assert len(told) == len(set(told)), "and told once"


def test_members_are_spread_over_zones(cluster: DisqueCluster, kube: Kube) -> None:
    zones = {
        machine["metadata"]["name"]: machine["metadata"]["labels"].get("topology.kubernetes.io/zone")
        for machine in kube.all("Node")
        if not machine["spec"].get("taints")
    }
    if len(set(zones.values())) < 3:
        pytest.skip("there are not three zones here")
    cluster.create(replicas=3)
    cluster.wait_running(3)
    assert len({zones[cluster.machine(ordinal)] for ordinal in range(3)}) == 3


def test_a_cluster_that_sleeps_and_wakes_has_all_its_jobs(
    cluster: DisqueCluster, kube: Kube, settings: Settings, times: Times
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    with Filling(kube, cluster, settings.image, JOBS, replicate=2) as jobs:
        begin_s = cluster.patch(hibernate=True)
        cluster.wait_phase("Hibernated")
        times.since("hibernated_s", begin_s)
        assert cluster.pods() == []
        assert len(cluster.claims()) == 3

        begin_s = cluster.patch(hibernate=False)
        cluster.wait_running(3)
        times.since("awake_again_s", begin_s)
        assert cluster.ids() == ids
        jobs.consume()
        account = jobs.settle()
    account.check(at_least=450)
    assert account.duplicates == 0, str(account)


def test_a_paused_cluster_is_left_alone(cluster: DisqueCluster, kube: Kube) -> None:
    cluster.create(replicas=1)
    cluster.wait_running(1)
    cluster.patch(paused=True, replicas=2)
    cluster.wait_phase("Paused")
    uid = cluster.uid(0)
    kube.delete("Pod", cluster.pod(0), cluster.namespace)
    cluster.wait_replaced(0, uid)
    assert kube.get("StatefulSet", "shop", cluster.namespace)["spec"]["replicas"] == 1
    cluster.patch(paused=False)
    cluster.wait_running(2)


@pytest.mark.parametrize(("retention", "claims"), [("Retain", 2), ("Delete", 0)])
def test_deleting_drains_nothing_and_keeps_volumes_if_asked(
    cluster: DisqueCluster, kube: Kube, settings: Settings, retention: str, claims: int
) -> None:
    cluster.create(replicas=2, storage={"size": "64Mi", "retention": {"whenDeleted": retention}})
    cluster.wait_running(2)
    with Filling(kube, cluster, settings.image, {"plain": 100}):
        cluster.delete()
        cluster.wait_pods(lambda pods: not pods, "all pods are gone", within_s=60)

        def left(found: list[Json]) -> bool:
            return len(found) == claims

        kube.wait("PersistentVolumeClaim", cluster.namespace, left, f"{claims} claims are left", within_s=60)


def test_a_namespace_goes_at_once_whatever_its_cluster_does(
    cluster: DisqueCluster, kube: Kube, settings: Settings, times: Times
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    with Filling(kube, cluster, settings.image, {"plain": 20_000}):
        cluster.patch(replicas=2)
        cluster.wait_phase("Draining", "Running")
        begin_s = time.monotonic()
        kube.delete("Namespace", cluster.namespace)
        kube.wait(
            "Namespace",
            "",
            lambda found: not found,
            "the namespace is gone",
            name=cluster.namespace,
            within_s=NAMESPACE_S,
        )
        times.since("namespace_deleted_s", begin_s)
