"""Scaling out and in without losing jobs: under load, with many jobs, and with reverted or interrupted drains."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from e2e.support.cluster import DisqueCluster, condition, is_running
from e2e.support.kube import Json, Kube
from e2e.support.load import Backlog, Load
from e2e.support.settings import Settings
from e2e.support.times import Times

MANY = 40_000
"""Enough jobs for a drain that takes seconds, so that the test can act during it."""


def draining_pod(status: Json) -> str | None:
    """Return the name of the pod that is draining, None if there is none."""
    pod = status.get("drain", {}).get("pod")
    return str(pod) if pod else None


@contextlib.contextmanager
def filled(cluster: DisqueCluster, settings: Settings, jobs: dict[str, int], take: int = 0) -> Iterator[Backlog]:
    """Add jobs with one copy, which stay queued until `consume`."""
    with Backlog(cluster.kube, cluster, settings.image, jobs, take=take) as backlog:
        yield backlog


def check_delivered(backlog: Backlog) -> None:
    """Consume the jobs, and check that all are delivered and nearly none is delivered twice."""
    backlog.consume()
    account = backlog.settle()
    account.check(at_least=1)
    assert account.duplicates <= len(account.added) / 1000, str(account)


def test_scale_out_and_in_under_load_loses_no_job(cluster: DisqueCluster, load: Load, times: Times) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    with load:
        begin_s = cluster.patch(replicas=5)
        cluster.wait_running(5)
        times.since("scaled_out_from_3_to_5_s", begin_s)
        begin_s = cluster.patch(replicas=3)
        cluster.wait_running(3)
        times.since("scaled_in_from_5_to_3_under_load_s", begin_s)
        assert cluster.pod_names() == ["shop-0", "shop-1", "shop-2"]
        cluster.kube.wait(
            "PersistentVolumeClaim",
            cluster.namespace,
            lambda claims: len(claims) == 3,
            "volumes of drained members are deleted",
            within_s=60,
        )
        account = load.settle()
    account.check(at_least=500)


def test_operator_introduces_a_new_member(cluster: DisqueCluster) -> None:
    cluster.create(replicas=2)
    cluster.wait_running(2)
    with cluster.brokers() as brokers:  # now only the operator can connect them to a new member
        for broker in brokers:
            broker.call("CONFIG", "SET", "cluster-seeds", "")
    cluster.patch(replicas=3)
    cluster.wait_running(3)
    met = [event["message"] for event in cluster.events() if event["reason"] == "MemberIntroduced"]
    new = cluster.ids()["shop-2"]
    assert [text for text in met if "shop-2" in text] == [f"shop-0 meets shop-2 (node {new}): shop-2 is a new member"]


@pytest.mark.long
def test_scale_in_to_one_member_transfers_queued_jobs(cluster: DisqueCluster, settings: Settings, times: Times) -> None:
    cluster.create(replicas=5)
    cluster.wait_running(5)
    with filled(cluster, settings, {"plain": 100_000, "far": 500, "once": 500, "held": 300}, take=200) as backlog:
        begin_s = cluster.patch(replicas=3)
        cluster.wait(lambda status: is_running(status, 3), "runs with 3 members")
        times.since("scaled_in_from_5_to_3_with_100_000_jobs_s", begin_s)
        begin_s = cluster.patch(replicas=1)
        cluster.wait(lambda status: is_running(status, 1), "runs with 1 member")
        times.since("scaled_in_from_3_to_1_with_100_000_jobs_s", begin_s)
        with cluster.broker(0) as last:
            missing = set(backlog.account.job_ids.values()) - last.job_ids()
        assert not missing, f"{len(missing)} jobs are not on the last node: {sorted(missing)[:5]}"
        check_delivered(backlog)


def test_scaling_out_during_a_drain_cancels_it(cluster: DisqueCluster, settings: Settings) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    uids = [cluster.uid(ordinal) for ordinal in range(3)]
    with filled(cluster, settings, {"plain": MANY}) as backlog:
        cluster.patch(replicas=2)
        assert cluster.wait(draining_pod, "a pod is draining") == "shop-2"
        cluster.patch(replicas=3)
        cluster.wait_running(3)
        assert [cluster.uid(ordinal) for ordinal in range(3)] == uids, "no pod was deleted"
        with cluster.broker(2) as broker:
            assert broker.call("CLUSTER", "LEAVING").decode() == "no"
        check_delivered(backlog)


def test_change_during_a_drain_is_applied_after_it(cluster: DisqueCluster, settings: Settings) -> None:
    cluster.create(replicas=4)
    cluster.wait_running(4)
    with filled(cluster, settings, {"plain": MANY}) as backlog:
        cluster.patch(replicas=3)
        assert cluster.wait(draining_pod, "a pod is draining") == "shop-3"
        cluster.patch(replicas=2, config={"slowlog-max-len": "77"})
        cluster.wait_running(2)
        with cluster.brokers() as brokers:
            assert {broker.directive("slowlog-max-len") for broker in brokers} == {"77"}
        check_delivered(backlog)


def test_drain_continues_after_the_draining_member_was_killed(cluster: DisqueCluster, settings: Settings) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    with filled(cluster, settings, {"plain": MANY}) as backlog:
        cluster.patch(replicas=2)
        assert cluster.wait(draining_pod, "a pod is draining") == "shop-2"
        cluster.kube.delete("Pod", "shop-2", cluster.namespace, grace_s=0)
        cluster.wait_running(2)
        backlog.consume()
        backlog.settle().check(at_least=MANY)


def test_scale_in_below_the_number_of_copies_is_refused(cluster: DisqueCluster, kube: Kube) -> None:
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


def test_scale_subresource_works_for_kubectl_and_autoscalers(cluster: DisqueCluster, kube: Kube) -> None:
    cluster.create(replicas=1)
    cluster.wait_running(1)
    kube.patch("DisqueCluster", "shop", cluster.namespace, {"spec": {"replicas": 2}}, part="scale")
    cluster.wait_running(2)
    selected = kube.all("Pod", cluster.namespace, cluster.status["selector"])
    assert len(selected) == 2
    assert condition(cluster.status, "Progressing")["status"] == "False"


def test_deleted_pod_without_a_volume_transfers_its_jobs(cluster: DisqueCluster) -> None:
    cluster.create(replicas=3, storage={"ephemeral": True}, persistence={"appendonly": False})
    cluster.wait_running(3)
    with cluster.broker(1) as broker:
        words = ("ADDJOB", "q", "body", 5000, "REPLICATE", 1, "RETRY", 3600)
        added = {job_id.decode() for job_id in broker.pipeline([words] * 1000)}
    uid = cluster.uid(1)
    cluster.kube.delete("Pod", "shop-1", cluster.namespace)
    cluster.wait_replaced(1, uid, within_s=60)
    cluster.wait_running(3)
    with cluster.broker(0) as one, cluster.broker(2) as other:
        found = one.job_ids() | other.job_ids()
    assert found == added


def test_ephemeral_cluster_drains_a_pod_before_replacing_it(cluster: DisqueCluster, load: Load) -> None:
    cluster.create(replicas=3, storage={"ephemeral": True}, persistence={"appendonly": False})
    cluster.wait_running(3)
    ids = set(cluster.ids().values())
    with load:
        cluster.annotate(restart_at="now")
        cluster.wait(lambda status: not {member["nodeId"] for member in status["members"]} & ids, "all are new")
        cluster.wait_running(3)
        account = load.settle()
    account.check(at_least=200)
