"""Pods, volumes, nodes and the API server fail under load; no acknowledged job is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from e2e.support.brokers import poll
from e2e.support.cluster import DisqueCluster, is_ready
from e2e.support.kube import Json, Kube
from e2e.support.load import Load
from e2e.support.operators import SELECTOR
from e2e.support.settings import Settings, run_hook
from e2e.support.times import Times

POD_BACK_S = 30
OUTAGE_S = 60
HEALED_S = 180
EVICTED_S = 120


def test_deleted_pod_comes_back(cluster: DisqueCluster, load: Load, times: Times) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    with load:
        uid = cluster.uid(1)
        begin_s = time.monotonic()
        cluster.kube.delete("Pod", "shop-1", cluster.namespace)
        cluster.wait_replaced(1, uid, within_s=2 * POD_BACK_S)
        times.since("deleted_pod_back_s", begin_s)
        cluster.wait_running(3)
        account = load.settle()
    assert cluster.ids() == ids
    account.check(at_least=200)


def test_killed_pod_comes_back(cluster: DisqueCluster, load: Load, times: Times) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    with load:
        uid = cluster.uid(0)
        begin_s = time.monotonic()
        cluster.kube.delete("Pod", "shop-0", cluster.namespace, grace_s=0)
        cluster.wait_replaced(0, uid, within_s=POD_BACK_S)
        times.since("killed_pod_back_s", begin_s)
        cluster.wait_running(3)
        account = load.settle()
    assert cluster.ids() == ids
    account.check(at_least=100, once_may_be_lost=True)


@pytest.mark.parametrize("grace_s", [None, 0], ids=["graceful", "killed"])
def test_cluster_recovers_when_all_pods_are_deleted_at_once(
    cluster: DisqueCluster, load: Load, times: Times, grace_s: int | None
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    uids = {cluster.uid(ordinal) for ordinal in range(3)}
    with load:
        begin_s = time.monotonic()
        for pod in cluster.pod_names():
            cluster.kube.delete("Pod", pod, cluster.namespace, grace_s=grace_s)
        cluster.wait_pods(
            lambda pods: sum(is_ready(pod) and pod["metadata"]["uid"] not in uids for pod in pods) == 3,
            "all pods are back",
        )
        cluster.wait_running(3)
        times.since("all_pods_deleted_cluster_back_s" if grace_s is None else "all_pods_killed_cluster_back_s", begin_s)
        account = load.settle()
    assert cluster.ids() == ids
    account.check(at_least=200, once_may_be_lost=True, calls_may_fail=True)


def test_member_with_a_lost_volume_is_replaced_by_a_new_one(cluster: DisqueCluster, load: Load, times: Times) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    with load:
        begin_s = time.monotonic()
        cluster.kube.delete("PersistentVolumeClaim", "data-shop-2", cluster.namespace)
        cluster.kube.delete("Pod", "shop-2", cluster.namespace, grace_s=0)
        poll(lambda: cluster.ids().get("shop-2", ids["shop-2"]) != ids["shop-2"], "there is a new node", HEALED_S)
        cluster.wait_formed(3, within_s=HEALED_S)
        times.since("lost_volume_healed_s", begin_s)
        cluster.wait_running(3)
        account = load.settle()
    account.check(at_least=200, once_may_be_lost=True)


def test_members_that_forgot_each_other_are_reconnected(cluster: DisqueCluster) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    with cluster.broker(0) as broker:
        for pod in ("shop-1", "shop-2"):
            broker.call("CLUSTER", "FORGET", ids[pod])
    cluster.wait_formed(3, within_s=HEALED_S)
    assert cluster.ids() == ids


@pytest.fixture
def cordon(kube: Kube, cluster: DisqueCluster) -> Iterator[Callable[[int], str]]:
    """A function that cordons the Kubernetes node of a pod until the test ends."""
    cordoned: list[str] = []

    def cordon_node(ordinal: int) -> str:
        name = cluster.kubernetes_node(ordinal)
        kube.patch("Node", name, "", {"spec": {"unschedulable": True}})
        cordoned.append(name)
        return name

    yield cordon_node
    for name in cordoned:
        kube.patch("Node", name, "", {"spec": {"unschedulable": None}})


@pytest.mark.alone
def test_kubernetes_node_is_drained_within_the_disruption_budget(
    cluster: DisqueCluster, kube: Kube, load: Load, cordon: Callable[[int], str]
) -> None:
    if len(kube.all("Node")) < 2:
        pytest.skip("the cluster has only one Kubernetes node")
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    with load:
        drained = cordon(2)
        affected = [pod["metadata"]["name"] for pod in cluster.pods() if pod["spec"]["nodeName"] == drained]
        for pod in affected:
            poll(partial(kube.evict, pod, cluster.namespace), f"{pod} is evicted", EVICTED_S)
            cluster.wait_pods(lambda pods: all_ready_elsewhere(pods, drained), "it runs elsewhere", EVICTED_S)
        cluster.wait_running(3)
        account = load.settle()
    assert cluster.ids() == ids
    account.check(at_least=200)


def all_ready_elsewhere(pods: list[Json], drained: str) -> bool:
    """Return whether three pods are ready on other Kubernetes nodes."""
    return len([pod for pod in pods if is_ready(pod) and pod["spec"].get("nodeName") != drained]) == 3


@pytest.mark.alone
def test_cluster_recovers_when_a_lost_kubernetes_node_comes_back_with_new_addresses(
    cluster: DisqueCluster, kube: Kube, settings: Settings, operator: Json, times: Times
) -> None:
    if not settings.node_stop:
        pytest.skip("set E2E_NODE_STOP and E2E_NODE_START to commands that stop and start a Kubernetes node")
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    addresses = {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in cluster.pods()}
    [of_operator] = [pod["spec"]["nodeName"] for pod in kube.all("Pod", operator["metadata"]["namespace"], SELECTOR)]
    member = next(ordinal for ordinal in (2, 1, 0) if cluster.kubernetes_node(ordinal) != of_operator)
    lost = cluster.kubernetes_node(member)
    with Load(kube, cluster, settings.image, avoid=lost) as load:
        run_hook(settings.node_stop, NODE=lost)
        try:
            wait_node(kube, lost, "Unknown")
            cluster.wait(lambda status: status["readyReplicas"] == 2, "the status shows the loss", OUTAGE_S)
            time.sleep(OUTAGE_S)
        finally:
            begin_s = time.monotonic()
            run_hook(settings.node_start, NODE=lost)
        wait_node(kube, lost, "True")
        cluster.wait_running(3)
        times.since("lost_node_cluster_recovered_s", begin_s)
        account = load.settle()
    assert cluster.ids() == ids
    moved_to = {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in cluster.pods()}
    assert moved_to[cluster.pod(member)] != addresses[cluster.pod(member)]
    account.check(at_least=500, once_may_be_lost=True)


def wait_node(kube: Kube, name: str, ready: str) -> None:
    """Wait until the condition Ready of a Kubernetes node has this status."""

    def has_status(nodes: list[Json]) -> bool:
        return any(
            entry["type"] == "Ready" and entry["status"] == ready
            for node in nodes
            for entry in node["status"]["conditions"]
        )

    kube.wait("Node", "", has_status, f"{name} is ready: {ready}", name=name, within_s=HEALED_S)


@pytest.mark.alone
@pytest.mark.timeout(900)
def test_brokers_keep_serving_while_the_api_server_is_down(
    cluster: DisqueCluster, settings: Settings, load: Load, times: Times
) -> None:
    if not settings.api_stop:
        pytest.skip("set E2E_API_STOP and E2E_API_START to commands that stop and start the API server")
    cluster.create(replicas=3)
    cluster.wait_running(3)
    with load:
        run_hook(settings.api_stop)
        try:
            time.sleep(OUTAGE_S)
        finally:
            run_hook(settings.api_start)
        begin_s = poll(lambda: cluster.patch(replicas=4), "the API server is back", HEALED_S)
        cluster.wait_running(4)
        times.since("scaled_out_after_api_server_outage_s", begin_s)
        account = load.settle()
    account.check(at_least=OUTAGE_S * 10)
