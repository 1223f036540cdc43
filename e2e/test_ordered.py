"""Ordered queues under load: no job is lost and the order is kept while members come, go, restart and lose volumes."""

from __future__ import annotations

import time

import pytest

from e2e.support.brokers import poll
from e2e.support.cluster import DisqueCluster, condition
from e2e.support.kube import Json, Kube
from e2e.support.loadpod import ORDERED
from e2e.support.orderedload import OrderedLoad, declare_queue, move_to, place, unfinished
from e2e.support.settings import Settings, run_hook
from e2e.support.times import Times
from e2e.support.zones import Zoned, wait_for_zones, zone_of

under_load = pytest.mark.alone  # the pace of the load needs the machine
ENABLED = {"enabled": True}
READY_S = 120
HEALED_S = 240
LOST_S = 120
DROPPED_S = 60


@pytest.fixture
def ordered(kube: Kube, cluster: DisqueCluster, settings: Settings) -> OrderedLoad:
    """Load for the ordered queue; it starts when the test enters the context."""
    return OrderedLoad(kube, cluster, settings.image)


def create(cluster: DisqueCluster, replicas: int) -> None:
    """Create a cluster with the ordered queue."""
    cluster.create(replicas=replicas, ordered=ENABLED)
    cluster.wait_running(replicas)
    wait_led(cluster)
    declare_queue(cluster)


def wait_led(cluster: DisqueCluster, within_s: float = READY_S) -> None:
    """Wait until all queues have a leader and all their replicas."""
    cluster.wait_condition("OrderedReady", "True", within_s, reason="AllLed")


def catalog(cluster: DisqueCluster) -> str:
    """Return the identity of the catalog."""
    return str(cluster.status["ordered"]["catalog"])


def test_catalog_is_founded_once_and_the_queue_is_where_its_resource_says(cluster: DisqueCluster) -> None:
    create(cluster, 3)
    first = catalog(cluster)
    assert place(cluster)["replicas"] == ["shop-0", "shop-1", "shop-2"]
    with cluster.brokers() as brokers:
        for broker in brokers:
            assert broker.call("QTYPE", ORDERED) == b"ordered"
    cluster.annotate(restart_at="2026-01-01")
    cluster.wait_condition("Progressing", "True", reason="RollingOut")
    cluster.wait_running(3)
    wait_led(cluster)
    assert catalog(cluster) == first


@under_load
def test_scale_out_and_in_under_load_keeps_all_jobs_in_order(
    cluster: DisqueCluster, ordered: OrderedLoad, times: Times
) -> None:
    create(cluster, 3)
    with ordered:
        cluster.patch(replicas=5)
        cluster.wait_running(5)
        wait_led(cluster)
        move_to(cluster, ["shop-4", "shop-3", "shop-0"])
        begin_s = cluster.patch(replicas=3)
        cluster.wait_running(3)
        wait_led(cluster)
        times.since("ordered_scaled_in_from_5_to_3_under_load_s", begin_s)
        account = ordered.settle()
    assert place(cluster)["replicas"] == ["shop-0", "shop-1", "shop-2"]
    account.check_ordered(at_least=500)


@under_load
def test_cluster_that_began_with_five_members_gets_smaller(cluster: DisqueCluster, ordered: OrderedLoad) -> None:
    create(cluster, 5)
    assert len(cluster.status["ordered"]["members"]) == 5
    with ordered:
        move_to(cluster, ["shop-3", "shop-4", "shop-1"])
        cluster.patch(replicas=3)
        cluster.wait_running(3)
        wait_led(cluster)
        account = ordered.settle()
    assert cluster.status["ordered"]["members"] == ["shop-0", "shop-1", "shop-2"]
    account.check_ordered(at_least=500)


@under_load
def test_new_image_is_rolled_out_under_load_and_keeps_all_jobs_in_order(
    cluster: DisqueCluster, ordered: OrderedLoad, settings: Settings, times: Times
) -> None:
    create(cluster, 3)
    with ordered:
        cluster.patch(image=settings.next_image)
        cluster.wait_pods(lambda pods: all(image(pod) == settings.next_image for pod in pods), "all are new", 300)
        cluster.wait_running(3)
        wait_led(cluster)
        account = ordered.settle()
    account.check_ordered(at_least=500)
    times.note("ordered_upgrade_slowest_1_percent_of_adds_ms", account.percentile_ms(0.99))


def image(pod: Json) -> str:
    """Return the image of a pod."""
    return str(pod["spec"]["containers"][0]["image"])


@under_load
def test_lost_volume_of_the_leader_is_replaced_under_load_and_no_job_is_lost(
    cluster: DisqueCluster, ordered: OrderedLoad, times: Times
) -> None:
    create(cluster, 3)
    ids, first, lost = cluster.ids(), catalog(cluster), place(cluster)["leader"]
    with ordered:
        begin_s = time.monotonic()
        cluster.kube.delete("PersistentVolumeClaim", f"data-{lost}", cluster.namespace)
        cluster.kube.delete("Pod", lost, cluster.namespace, grace_s=0)
        poll(lambda: cluster.ids().get(lost, ids[lost]) != ids[lost], "there is a new node", HEALED_S)
        cluster.wait_running(3)
        wait_led(cluster, HEALED_S)
        times.since("ordered_lost_volume_healed_s", begin_s)
        account = ordered.settle()
    assert place(cluster)["replicas"] == ["shop-0", "shop-1", "shop-2"]
    assert catalog(cluster) == first
    account.check_ordered(at_least=500)


@under_load
@pytest.mark.timeout(900)
def test_lost_zone_keeps_the_queue_in_service(
    cluster: DisqueCluster, kube: Kube, settings: Settings, zones: Zoned
) -> None:
    create(cluster, 3)
    wait_for_zones(cluster, zones)
    replicas = place(cluster)["replicas"]
    assert len({zone_of(cluster, zones, pod) for pod in replicas}) == 3
    if not settings.node_stop:
        pytest.skip("set E2E_NODE_STOP and E2E_NODE_START to commands that stop and start a Kubernetes node")
    leader = place(cluster)["leader"]
    lost = cluster.kubernetes_node(int(leader.rpartition("-")[2]))
    others = [pod for pod in replicas if pod != leader]
    with OrderedLoad(kube, cluster, settings.image, avoid=lost) as load:
        run_hook(settings.node_stop, NODE=lost)
        try:
            with cluster.broker(int(others[0].rpartition("-")[2])) as broker:
                added = poll(lambda: int(qstat(broker.call("QSTAT", ORDERED))["jobs-in"]), "it is served", LOST_S)
                poll(
                    lambda: int(qstat(broker.call("QSTAT", ORDERED))["jobs-in"]) > added + 100,
                    "jobs are added without the zone",
                    LOST_S,
                )
        finally:
            run_hook(settings.node_start, NODE=lost)
        cluster.wait_running(3, within_s=HEALED_S)
        wait_led(cluster)
        account = load.settle()
    account.check_ordered(at_least=500)


def qstat(reply: list[object]) -> dict[str, str]:
    """Return the fields of a reply to QSTAT."""
    words = [word.decode() if isinstance(word, bytes) else str(word) for word in reply]
    return dict(zip(words[::2], words[1::2], strict=True))


def test_queue_of_a_deleted_resource_is_dropped_when_its_jobs_are_finished(cluster: DisqueCluster, kube: Kube) -> None:
    create(cluster, 3)
    with cluster.broker(0) as broker:
        job_id = broker.call("ADDJOB", ORDERED, "body", 5000)
        kube.delete("DisqueQueue", ORDERED, cluster.namespace)
        cluster.wait(lambda status: status["ordered"]["waitingToDrop"] == [ORDERED], "it waits", DROPPED_S)
        assert ORDERED in condition(cluster.status, "OrderedReady")["message"]
        assert unfinished(broker.call("QSTAT", ORDERED)) == 1
        broker.call("ACKJOB", job_id)
        poll(lambda: broker.call("QTYPE", ORDERED) == b"jobs", "the queue is dropped", DROPPED_S)


def test_scale_in_below_the_replicas_of_the_queue_is_refused(cluster: DisqueCluster) -> None:
    create(cluster, 3)
    cluster.patch(replicas=2, ordered={"replicas": 1})
    refused = cluster.wait_condition("Draining", "False", reason="NotEnoughMembers")
    assert ORDERED in refused["message"]
    cluster.kube.delete("DisqueQueue", ORDERED, cluster.namespace)
    cluster.wait_running(2)
