"""Members come and go, and no job is lost: under load, with many jobs, with a change of mind, with a death midway."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from e2e.support.cluster import DisqueCluster, condition, is_running
from e2e.support.kube import Json, Kube
from e2e.support.load import Filling, Load
from e2e.support.settings import Settings
from e2e.support.times import Times

MANY = 40_000
"""Enough for a drain that takes seconds: there is a midway."""


def drains(status: Json) -> str | None:
    """The pod that is being emptied."""
    pod = status.get("drain", {}).get("pod")
    return str(pod) if pod else None


@contextlib.contextmanager
def filled(cluster: DisqueCluster, settings: Settings, jobs: dict[str, int], take: int = 0) -> Iterator[Filling]:
    """Jobs in one copy, which nobody takes until `consume`."""
    with Filling(cluster.kube, cluster, settings.image, jobs, take=take) as filling:
        yield filling


def settled(filling: Filling) -> None:
    """Everything is delivered, and next to nothing twice."""
    filling.consume()
    account = filling.settle()
    account.check(at_least=1)
    assert account.duplicates <= len(account.added) / 1000, str(account)


def test_grows_and_shrinks_under_load(cluster: DisqueCluster, load: Load, times: Times) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    with load:
        begin_s = cluster.patch(replicas=5)
        cluster.wait_running(5)
        times.since("grown_from_3_to_5_s", begin_s)
        begin_s = cluster.patch(replicas=3)
        cluster.wait_running(3)
        times.since("shrunk_from_5_to_3_under_load_s", begin_s)
        assert cluster.pod_names() == ["shop-0", "shop-1", "shop-2"]
        cluster.kube.wait(
            "PersistentVolumeClaim",
            cluster.namespace,
            lambda claims: len(claims) == 3,
            "drained volumes go",
            within_s=60,
        )
        account = load.settle()
    account.check(at_least=500)


def test_shrinks_to_one_with_jobs_that_nobody_takes(cluster: DisqueCluster, settings: Settings, times: Times) -> None:
    cluster.create(replicas=5)
    cluster.wait_running(5)
    with filled(cluster, settings, {"plain": 100_000, "far": 500, "once": 500, "held": 300}, take=200) as filling:
        begin_s = cluster.patch(replicas=3)
        cluster.wait(lambda status: is_running(status, 3), "runs with 3 members")
        times.since("shrunk_from_5_to_3_with_100_000_jobs_s", begin_s)
        begin_s = cluster.patch(replicas=1)
        cluster.wait(lambda status: is_running(status, 1), "runs with 1 member")
        times.since("shrunk_from_3_to_1_with_100_000_jobs_s", begin_s)
        with cluster.broker(0) as last:
            missing = set(filling.account.job_ids.values()) - last.job_ids()
        assert not missing, f"{len(missing)} jobs are not on the last node: {sorted(missing)[:5]}"
        settled(filling)


def test_a_change_of_mind_midway_undoes_a_shrink(cluster: DisqueCluster, settings: Settings) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    uids = [cluster.uid(ordinal) for ordinal in range(3)]
    with filled(cluster, settings, {"plain": MANY}) as filling:
        cluster.patch(replicas=2)
        assert cluster.wait(drains, "drains") == "shop-2"
        cluster.patch(replicas=3)
        cluster.wait_running(3)
        assert [cluster.uid(ordinal) for ordinal in range(3)] == uids, "no pod went"
        with cluster.broker(2) as broker:
            assert broker.call("CLUSTER", "LEAVING").decode() == "no"
        settled(filling)


def test_a_second_change_during_a_drain_comes_after_it(cluster: DisqueCluster, settings: Settings) -> None:
    cluster.create(replicas=4)
    cluster.wait_running(4)
    with filled(cluster, settings, {"plain": MANY}) as filling:
        cluster.patch(replicas=3)
        assert cluster.wait(drains, "drains") == "shop-3"
        cluster.patch(replicas=2, config={"slowlog-max-len": "77"})
        cluster.wait_running(2)
        with cluster.brokers() as brokers:
            assert {broker.directive("slowlog-max-len") for broker in brokers} == {"77"}
        settled(filling)


def test_a_leaver_that_dies_midway_comes_back_and_goes_on(cluster: DisqueCluster, settings: Settings) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    with filled(cluster, settings, {"plain": MANY}) as filling:
        cluster.patch(replicas=2)
        assert cluster.wait(drains, "drains") == "shop-2"
        cluster.kube.delete("Pod", "shop-2", cluster.namespace, grace_s=0)
        cluster.wait_running(2)
        filling.consume()
        filling.settle().check(at_least=MANY)


def test_a_shrink_below_the_copies_in_use_is_refused(cluster: DisqueCluster, kube: Kube) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    with cluster.broker(0) as broker:
        job_id = broker.call("ADDJOB", "mail", "body", 5000, "REPLICATE", 3)
        cluster.patch(replicas=2)
        refused = cluster.wait_condition("Draining", "False", reason="NotEnoughMembers")
        assert "3" in refused["message"]
        assert kube.get("StatefulSet", "shop", cluster.namespace)["spec"]["replicas"] == 3
        broker.call("ACKJOB", job_id)
    cluster.wait_running(2)


def test_kubectl_scale_and_an_autoscaler_find_what_they_need(cluster: DisqueCluster, kube: Kube) -> None:
    cluster.create(replicas=1)
    cluster.wait_running(1)
    kube.patch("DisqueCluster", "shop", cluster.namespace, {"spec": {"replicas": 2}}, part="scale")
    cluster.wait_running(2)
    selected = kube.all("Pod", cluster.namespace, cluster.status["selector"])
    assert len(selected) == 2
    assert condition(cluster.status, "Progressing")["status"] == "False"


def test_an_ephemeral_cluster_hands_over_before_a_pod_goes(cluster: DisqueCluster, load: Load) -> None:
    cluster.create(replicas=3, storage={"ephemeral": True}, persistence={"appendonly": False})
    cluster.wait_running(3)
    ids = set(cluster.ids().values())
    with load:
        cluster.annotate(restart_at="now")
        cluster.wait(lambda status: not {member["nodeId"] for member in status["members"]} & ids, "all are new")
        cluster.wait_running(3)
        account = load.settle()
    account.check(at_least=200)
