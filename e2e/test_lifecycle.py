"""Creation, hibernation, pausing, deletion and isolation of clusters."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from e2e.support.cluster import DisqueCluster
from e2e.support.kube import Json, Kube
from e2e.support.load import Backlog
from e2e.support.settings import Settings
from e2e.support.times import Times

NEW_CLUSTER_S = 60
NAMESPACE_S = 60
JOBS = {"plain": 300, "far": 50, "once": 100}


def test_new_cluster_of_three_members_forms(cluster: DisqueCluster, times: Times) -> None:
    begin_s = cluster.create(replicas=3)
    cluster.wait_running(3, within_s=NEW_CLUSTER_S)
    times.since("new_cluster_of_3_ready_s", begin_s)

    status = cluster.status
    assert {member["pod"]: member["nodeId"] for member in status["members"]} == cluster.ids()
    assert {member["state"] for member in status["members"]} == {"ready"}
    assert status["endpoint"].startswith(cluster.service)
    events = [(event["reason"], event.get("message")) for event in cluster.events()]
    assert events
    assert len(events) == len(set(events)), "each event is emitted once"


def test_members_are_spread_over_zones(cluster: DisqueCluster, kube: Kube) -> None:
    zones = {
        node["metadata"]["name"]: node["metadata"]["labels"].get("topology.kubernetes.io/zone")
        for node in kube.all("Node")
        if not node["spec"].get("taints")
    }
    if len(set(zones.values())) < 3:
        pytest.skip("the cluster has fewer than three zones")
    cluster.create(replicas=3)
    cluster.wait_running(3)
    assert len({zones[cluster.kubernetes_node(ordinal)] for ordinal in range(3)}) == 3


def test_cluster_has_all_its_jobs_after_hibernation(
    cluster: DisqueCluster, kube: Kube, settings: Settings, times: Times
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    with Backlog(kube, cluster, settings.image, JOBS, replicate=2) as jobs:
        begin_s = cluster.patch(hibernate=True)
        cluster.wait_phase("Hibernated")
        times.since("hibernated_s", begin_s)
        assert cluster.pods() == []
        assert len(cluster.claims()) == 3

        begin_s = cluster.patch(hibernate=False)
        cluster.wait_running(3)
        times.since("woken_s", begin_s)
        assert cluster.ids() == ids
        jobs.consume()
        account = jobs.settle()
    account.check(at_least=450)
    assert account.duplicates == 0, str(account)


def test_paused_cluster_is_not_changed(cluster: DisqueCluster, kube: Kube) -> None:
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
def test_deletion_does_not_drain_and_follows_the_retention_policy(
    cluster: DisqueCluster, kube: Kube, settings: Settings, retention: str, claims: int
) -> None:
    cluster.create(replicas=2, storage={"size": "64Mi", "retention": {"whenDeleted": retention}})
    cluster.wait_running(2)
    with Backlog(kube, cluster, settings.image, {"plain": 100}):
        cluster.delete()
        cluster.wait_pods(lambda pods: not pods, "all pods are gone", within_s=60)

        def left(found: list[Json]) -> bool:
            return len(found) == claims

        kube.wait("PersistentVolumeClaim", cluster.namespace, left, f"{claims} claims are left", within_s=60)


def test_namespace_with_a_draining_cluster_is_deleted_at_once(
    cluster: DisqueCluster, kube: Kube, settings: Settings, times: Times
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    with Backlog(kube, cluster, settings.image, {"plain": 20_000}):
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


def test_clusters_of_one_namespace_or_one_name_are_isolated(
    namespaces: Callable[[], str], kube: Kube, operator: Json, settings: Settings
) -> None:
    assert operator
    here, there = namespaces(), namespaces()
    clusters = [
        DisqueCluster(kube, namespace, name, settings.image)
        for namespace, name in ((here, "shop"), (here, "depot"), (there, "shop"))
    ]
    for cluster in clusters:
        cluster.create(replicas=2)
    for cluster in clusters:
        cluster.wait_running(2)
    ids = [set(cluster.ids().values()) for cluster in clusters]
    assert len(set.union(*ids)) == 6
    assert len({cluster.password for cluster in clusters}) == 3

    one, other, far = clusters
    with one.broker(0) as broker:
        broker.call("ADDJOB", "mail", "body", 0)
    with other.broker(0) as near, far.broker(0) as distant:
        assert near.jobs() == distant.jobs() == 0
    one.delete()
    one.wait_pods(lambda pods: not pods, "the pods of the deleted cluster are gone")
    for cluster, members in zip(clusters[1:], ids[1:], strict=True):
        cluster.wait_running(2)
        assert set(cluster.ids().values()) == members
