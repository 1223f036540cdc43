"""Copies are in different zones, and members without volumes leave a Kubernetes node before it is drained."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from e2e.support.brokers import poll
from e2e.support.cluster import DisqueCluster
from e2e.support.kube import Kube
from e2e.support.settings import Settings, run_hook
from e2e.support.zones import Zoned, wait_for_zones, zone_of

JOBS = 60
KNOWN_S = 60
LOST_S = 120
MOVED_S = 180


def places(cluster: DisqueCluster, zones: Zoned) -> dict[str, set[str]]:
    """Return the zones in which each job has copies."""
    found: dict[str, set[str]] = {}
    with cluster.brokers() as brokers:
        for pod, broker in zip(cluster.pod_names(), brokers, strict=True):
            for job in broker.job_ids():
                found.setdefault(job, set()).add(zone_of(cluster, zones, pod))
    return found


@pytest.mark.alone
def test_loss_of_a_zone_loses_no_job(cluster: DisqueCluster, settings: Settings, zones: Zoned) -> None:
    cluster.create(replicas=5)
    cluster.wait_running(5)
    wait_for_zones(cluster, zones)
    jobs: set[str] = set()
    with cluster.brokers() as brokers:
        for broker in brokers:
            for _ in range(JOBS):
                jobs.add(broker.call("ADDJOB", "mail", "body", 5000, "REPLICATE", 2, "TTL", 86400).decode())
    where = places(cluster, zones)
    assert where.keys() == jobs
    assert {len(found) for found in where.values()} == {2}, "each copy is in a zone of its own"
    if not settings.node_stop:
        return
    lost = cluster.kubernetes_node(0)
    run_hook(settings.node_stop, NODE=lost)
    try:
        with_copies: set[str] = set()
        for pod in cluster.pod_names():
            if zone_of(cluster, zones, pod) != zones[lost]:
                with cluster.broker(int(pod.rpartition("-")[2])) as broker:
                    with_copies |= broker.job_ids()
        assert with_copies == jobs
    finally:
        run_hook(settings.node_start, NODE=lost)
    cluster.wait_running(5, within_s=LOST_S)


@pytest.fixture
def cordon(kube: Kube) -> Iterator[Callable[[str], None]]:
    """A function that cordons a Kubernetes node until the test ends."""
    cordoned: list[str] = []

    def cordon_node(name: str) -> None:
        kube.patch("Node", name, "", {"spec": {"unschedulable": True}})
        cordoned.append(name)

    yield cordon_node
    for name in cordoned:
        kube.patch("Node", name, "", {"spec": {"unschedulable": None}})


@pytest.mark.alone
def test_member_without_a_volume_moves_its_jobs_before_its_node_is_drained(
    cluster: DisqueCluster, kube: Kube, cordon: Callable[[str], None], zones: Zoned
) -> None:
    cluster.create(replicas=3, storage={"ephemeral": True}, persistence={"appendonly": False})
    cluster.wait_running(3)
    wait_for_zones(cluster, zones)
    with cluster.broker(2) as broker:
        jobs = {broker.call("ADDJOB", "mail", "body", 5000, "REPLICATE", 1).decode() for _ in range(JOBS)}
    poll(lambda: kube.find("PodDisruptionBudget", "shop", cluster.namespace), "there is a budget", KNOWN_S)
    assert not kube.evict("shop-2", cluster.namespace), "evictions are refused"
    node, uid = cluster.kubernetes_node(2), cluster.uid(2)
    cordon(node)
    cluster.wait_replaced(2, uid, within_s=MOVED_S)
    cluster.wait_running(3)
    assert cluster.kubernetes_node(2) != node
    assert places(cluster, zones).keys() == jobs
