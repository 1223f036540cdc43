"""Rolling upgrades and configuration changes under load, which clients must not notice."""

from __future__ import annotations

import base64
import time

import hiredis
import pytest

from e2e.support.brokers import Broker, poll
from e2e.support.cluster import SETTLE_S, DisqueCluster, is_ready
from e2e.support.kube import Json, Kube
from e2e.support.load import Load
from e2e.support.settings import Settings
from e2e.support.times import Times

NO_IMAGE = "localhost/there-is-no-such-image:1"
GRACE_S = 75
"""Longer than a kubelet takes to update a mounted Secret."""
REST_S = 25
"""Longer than a cluster needs to be at rest, and shorter than the interval of its rounds."""
STALL_MS = 5000


def created(pod: Json) -> str:
    """Return the creation time of a pod."""
    return str(pod["metadata"]["creationTimestamp"])


def images(cluster: DisqueCluster) -> list[str]:
    """Return the images of the pods, sorted by ordinal."""
    return [image(pod) for pod in cluster.pods()]


def image(pod: Json) -> str:
    """Return the image of a pod."""
    return str(pod["spec"]["containers"][0]["image"])


def test_new_image_is_rolled_out_pod_by_pod_without_client_errors(
    cluster: DisqueCluster, load: Load, settings: Settings, times: Times
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids = cluster.ids()
    with load:
        begin_s = cluster.patch(image=settings.next_image)
        cluster.wait_pods(lambda pods: all(image(pod) == settings.next_image for pod in pods), "all are new", 300)
        cluster.wait_running(3)
        times.note("upgrade_per_pod_s", (time.monotonic() - begin_s) / 3)
        account = load.settle()
    assert images(cluster) == [settings.next_image] * 3
    assert cluster.ids() == ids
    creation = [created(pod) for pod in cluster.pods()]
    assert creation == sorted(creation, reverse=True), "the highest ordinal is replaced first"
    account.check(at_least=500)
    times.note("upgrade_slowest_1_percent_of_adds_ms", account.percentile_ms(0.99))
    times.note("upgrade_duplicates", account.duplicates)
    assert account.percentile_ms(0.99) < STALL_MS, str(account)


def test_missing_image_stops_the_rollout_and_can_be_rolled_back(
    cluster: DisqueCluster, load: Load, settings: Settings
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    with load:
        cluster.patch(image=NO_IMAGE)
        degraded = cluster.wait_condition("Degraded", "True")
        assert NO_IMAGE in degraded["message"], degraded
        assert "shop-2" in degraded["message"], degraded
        assert images(cluster) == [settings.image, settings.image, NO_IMAGE]
        assert [is_ready(pod) for pod in cluster.pods()] == [True, True, False]
        cluster.patch(image=settings.image)
        cluster.wait_running(3)
        account = load.settle()
    assert images(cluster) == [settings.image] * 3
    account.check(at_least=300)


def test_directive_change_restarts_pods_only_if_needed(cluster: DisqueCluster, load: Load) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    uids = [cluster.uid(ordinal) for ordinal in range(3)]
    with load:
        cluster.patch(config={"slowlog-max-len": "77"})
        wait_directive(cluster, "slowlog-max-len", "77")
        cluster.wait_running(3)
        assert [cluster.uid(ordinal) for ordinal in range(3)] == uids

        cluster.patch(config={"slowlog-max-len": "77", "tcp-backlog": "300"})
        wait_directive(cluster, "tcp-backlog", "300")
        cluster.wait_running(3)
        assert not {cluster.uid(ordinal) for ordinal in range(3)} & set(uids)
        with cluster.brokers() as brokers:
            assert {broker.directive("slowlog-max-len") for broker in brokers} == {"77"}
        account = load.settle()
    account.check(at_least=500)


def wait_directive(cluster: DisqueCluster, name: str, value: str) -> None:
    """Wait until all brokers have this value."""

    def everywhere() -> bool:
        with cluster.brokers() as brokers:
            return all(broker.directive(name) == value for broker in brokers)

    poll(everywhere, f"{name} is {value} on all nodes", SETTLE_S)


def test_requested_restart_keeps_all_queues(kube: Kube, cluster: DisqueCluster, settings: Settings) -> None:
    cluster.create(replicas=2)
    cluster.wait_running(2)
    uids = {cluster.uid(ordinal) for ordinal in range(2)}
    # One copy: during the restart one of the two nodes is always down, and a queued job is only in its node's AOF.
    with Load(kube, cluster, settings.image, replicate=1) as load:
        cluster.annotate(restart_at="2026-01-01")
        cluster.wait_pods(
            lambda pods: all(is_ready(pod) and pod["metadata"]["uid"] not in uids for pod in pods), "all are new"
        )
        cluster.wait_running(2)
        account = load.settle()
    account.check(at_least=200)


@pytest.mark.long
def test_password_rotation_does_not_interrupt_clients(cluster: DisqueCluster, load: Load, times: Times) -> None:
    cluster.create(replicas=3, auth={"graceSeconds": GRACE_S})
    cluster.wait_running(3)
    former = cluster.password
    uids = [cluster.uid(ordinal) for ordinal in range(3)]
    with load:
        begin_s = cluster.patch(auth={"rotation": 1})
        poll(lambda: cluster.password != former, "a new password exists", SETTLE_S)
        poll(lambda: accepts(cluster, cluster.password), "all nodes accept it", SETTLE_S)
        times.since("password_rotated_on_all_nodes_s", begin_s)
        assert accepts(cluster, former), "the former password is accepted during the grace period"
        poll(lambda: not accepts(cluster, former), "the former password is rejected", GRACE_S + SETTLE_S)
        cluster.wait_running(3)
        account = load.settle()
    assert [cluster.uid(ordinal) for ordinal in range(3)] == uids, "nothing was restarted"
    account.check(at_least=500)


def test_changed_secret_of_a_user_takes_effect_at_once(cluster: DisqueCluster, kube: Kube) -> None:
    def secret(password: str) -> Json:
        metadata = {"name": "mine", "namespace": cluster.namespace}
        data = {"password": base64.b64encode(password.encode()).decode()}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}

    kube.create(secret("first"))
    cluster.create(replicas=1, auth={"secretName": "mine"})
    cluster.wait_running(1)
    time.sleep(REST_S)
    kube.apply(secret("second"))
    poll(lambda: cluster.password == "second", "clients get the new password", REST_S)
    assert accepts(cluster, "second")


def accepts(cluster: DisqueCluster, password: str | None) -> bool:
    """Return whether all nodes accept a password."""
    for pod in cluster.pod_names():
        with Broker(cluster.kube, cluster.namespace, pod, password) as broker:
            try:
                broker.call("PING")
            except hiredis.ReplyError:
                return False
    return True
