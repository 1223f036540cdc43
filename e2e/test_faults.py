"""Pods, volumes, machines and the API server are lost under load; no job that was answered for is."""

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
AWAY_S = 60
HEALED_S = 180
SCHEDULED_S = 400
"""After the API server was away the scheduler may see a claim before its volume, and then looks again at the pod after
five minutes only."""
EVICTED_S = 120


def test_a_pod_that_is_deleted_comes_back(cluster: DisqueCluster, load: Load, times: Times) -> None:
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


def test_a_pod_that_is_killed_comes_back(cluster: DisqueCluster, load: Load, times: Times) -> None:
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
    account.check(at_least=100, once_may_go=True)


@pytest.mark.parametrize("grace_s", [None, 0], ids=["in order", "killed"])
def test_all_pods_at_once_come_back(cluster: DisqueCluster, load: Load, times: Times, grace_s: int | None) -> None:
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
    account.check(at_least=200, once_may_go=True, calls_may_fail=True)


def test_a_lost_volume_makes_a_new_member_and_the_old_one_is_forgotten(
    cluster: DisqueCluster, load: Load, times: Times
) -> None:
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
    account.check(at_least=200, once_may_go=True)


def test_members_that_forgot_each_other_are_brought_together(cluster: DisqueCluster) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    with cluster.broker(0) as broker:
        for pod in ("shop-1", "shop-2"):
            broker.call("CLUSTER", "FORGET", ids[pod])
    cluster.wait_formed(3, within_s=HEALED_S)
    assert cluster.ids() == ids


@pytest.fixture
def machine(kube: Kube, cluster: DisqueCluster) -> Iterator[Callable[[int], str]]:
    """Takes the machine of a pod out of scheduling until the test ends."""
    cordoned: list[str] = []

    def cordon(ordinal: int) -> str:
        name = cluster.machine(ordinal)
        kube.patch("Node", name, "", {"spec": {"unschedulable": True}})
        cordoned.append(name)
        return name

    yield cordon
    for name in cordoned:
        kube.patch("Node", name, "", {"spec": {"unschedulable": None}})


@pytest.mark.alone
def test_a_machine_is_drained_under_the_budget(
    cluster: DisqueCluster, kube: Kube, load: Load, machine: Callable[[int], str]
) -> None:
    if len(kube.all("Node")) < 2:
        pytest.skip("there is one machine only")
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    with load:
        gone = machine(2)
        leaving = [pod["metadata"]["name"] for pod in cluster.pods() if pod["spec"]["nodeName"] == gone]
        for pod in leaving:
            poll(partial(kube.evict, pod, cluster.namespace), f"{pod} may go", EVICTED_S)
            cluster.wait_pods(lambda pods: moved(pods, gone), "it runs elsewhere", EVICTED_S)
        cluster.wait_running(3)
        account = load.settle()
    assert cluster.ids() == ids
    account.check(at_least=200)


def moved(pods: list[Json], gone: str) -> bool:
    """Whether all pods that are not on a machine are ready, and some left it."""
    there = [pod for pod in pods if is_ready(pod) and pod["spec"].get("nodeName") != gone]
    return len(there) == 3


@pytest.mark.alone
def test_a_machine_lost_for_a_minute_comes_back_with_new_addresses(
    cluster: DisqueCluster, kube: Kube, settings: Settings, operator: Json, times: Times
) -> None:
    if not settings.node_stop:
        pytest.skip("E2E_NODE_STOP and E2E_NODE_START say how a machine is lost and comes back")
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    addresses = {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in cluster.pods()}
    [seat] = [pod["spec"]["nodeName"] for pod in kube.all("Pod", operator["metadata"]["namespace"], SELECTOR)]
    member = next(ordinal for ordinal in (2, 1, 0) if cluster.machine(ordinal) != seat)
    lost = cluster.machine(member)
    with Load(kube, cluster, settings.image, avoid=lost) as load:
        run_hook(settings.node_stop, NODE=lost)
        try:
            wait_machine(kube, lost, "Unknown")
            cluster.wait(lambda status: status["readyReplicas"] == 2, "the loss is told of", AWAY_S)
            time.sleep(AWAY_S)
        finally:
            begin_s = time.monotonic()
            run_hook(settings.node_start, NODE=lost)
        wait_machine(kube, lost, "True")
        cluster.wait_running(3)
        times.since("lost_machine_back_cluster_whole_s", begin_s)
        account = load.settle()
    assert cluster.ids() == ids
    moved_to = {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in cluster.pods()}
    assert moved_to[cluster.pod(member)] != addresses[cluster.pod(member)]
    account.check(at_least=500, once_may_go=True)


def wait_machine(kube: Kube, name: str, ready: str) -> None:
    """Until the machine is ready, or not, by the word of its condition."""

    def look(machines: list[Json]) -> bool:
        return any(
            entry["type"] == "Ready" and entry["status"] == ready
            for machine in machines
            for entry in machine["status"]["conditions"]
        )

    kube.wait("Node", "", look, f"{name} is ready: {ready}", name=name, within_s=HEALED_S)


@pytest.mark.alone
@pytest.mark.timeout(900)
def test_brokers_serve_on_while_the_api_server_is_away(
    cluster: DisqueCluster, settings: Settings, load: Load, times: Times
) -> None:
    if not settings.api_stop:
        pytest.skip("E2E_API_STOP and E2E_API_START say how the API server is taken away and comes back")
    cluster.create(replicas=3)
    cluster.wait_running(3)
    with load:
        run_hook(settings.api_stop)
        try:
            time.sleep(AWAY_S)
        finally:
            run_hook(settings.api_start)
        begin_s = poll(lambda: cluster.patch(replicas=4), "the API server is back", HEALED_S)
        cluster.wait_running(4, within_s=SCHEDULED_S)
        times.since("grown_after_api_server_was_away_s", begin_s)
        account = load.settle()
    account.check(at_least=AWAY_S * 10)
