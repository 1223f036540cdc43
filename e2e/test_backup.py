"""Backups of a cluster under load to an S3 server, and new clusters that are made of them."""

from __future__ import annotations

import time
from typing import Final

import pytest
from kubernetes.client.exceptions import ApiException

from e2e.support.brokers import poll
from e2e.support.cluster import API_VERSION, SMALL, DisqueCluster, is_running
from e2e.support.kube import Json, Kube
from e2e.support.load import ENOUGH, Backlog, Load
from e2e.support.s3 import S3
from e2e.support.settings import Settings
from e2e.support.times import Times

EVERY_MINUTE: Final = "* * * * *"
SCHEDULED_S: Final = 150
"""How long a backup of a schedule of every minute may take to be made."""
RESTORE_S: Final = 180
BACKLOG: Final = {"plain": 300, "delayed": 50, "far": 50}
CLAIM: Final = "backups"


def last_name(cluster: DisqueCluster) -> str:
    return str((cluster.status.get("backup") or {}).get("lastName", ""))


def wait_backup_after(cluster: DisqueCluster, former: str) -> str:
    """Wait until a backup other than `former` is made; return its name."""
    poll(lambda: last_name(cluster) not in {"", former}, "a scheduled backup is made", SCHEDULED_S)
    return last_name(cluster)


def wait_backup_begun_now(cluster: DisqueCluster) -> str:
    """Wait until a backup is made that has begun from now on; return its name. Backups do not overlap."""
    return wait_backup_after(cluster, wait_backup_after(cluster, last_name(cluster)))


def restored(cluster: DisqueCluster, name: str, replicas: int, store: Json, backup: str) -> DisqueCluster:
    """Create a cluster of another name and size that is made of a backup."""
    copy = DisqueCluster(cluster.kube, cluster.namespace, name, str(cluster.resource["spec"]["image"]))
    source = {"store": store, "name": backup}
    copy.create(replicas=replicas, resources=SMALL, bootstrap={"fromBackup": source})
    return copy


@pytest.mark.long
def test_scheduled_backup_under_load_is_restored_with_each_job_once(
    cluster: DisqueCluster, kube: Kube, settings: Settings, times: Times
) -> None:
    s3 = S3(kube, cluster.namespace, settings.image)
    backup = {"store": s3.store, "schedule": EVERY_MINUTE, "days": 1}
    clients = [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "load"}}}]
    cluster.create(replicas=3, resources=SMALL, backup=backup, networkPolicy={"clients": clients})
    cluster.wait_running(3)
    with Load(kube, cluster, settings.image) as load:
        cluster.wait_condition("BackedUp", "True", SCHEDULED_S)
        account = load.settle()
    account.check(at_least=ENOUGH)
    with Backlog(kube, cluster, settings.image, BACKLOG) as backlog:
        name = wait_backup_begun_now(cluster)
    begin_s = time.monotonic()
    copy = restored(cluster, "copy", 2, s3.store, name)
    copy.wait_running(2, within_s=RESTORE_S)
    times.since("restored_to_new_cluster_s", begin_s)
    done = copy.status["bootstrap"]
    assert (done["backup"], done["members"], done["jobs"]) == (name, 2, len(backlog.account.added))
    poll(lambda: not kube.all("Job", copy.namespace, "disque.dev/cluster=copy"), "its Jobs are deleted", RESTORE_S)
    reader = Backlog(kube, copy, settings.image, {})
    reader.account = backlog.account
    reader.consume()
    account = reader.settle()
    account.check(at_least=sum(BACKLOG.values()))
    assert account.duplicates == 0


def test_backup_on_demand_is_made_once_and_kept_when_its_resource_is_deleted(
    cluster: DisqueCluster, kube: Kube, settings: Settings
) -> None:
    s3 = S3(kube, cluster.namespace, settings.image)
    cluster.create(replicas=3, resources=SMALL, backup={"store": s3.store}, tls={"enabled": True})
    cluster.wait(lambda status: is_running(status, 3), "the operator verifies all members")
    request = {
        "apiVersion": API_VERSION,
        "kind": "DisqueBackup",
        "metadata": {"name": "now", "namespace": cluster.namespace},
        "spec": {"clusterRef": {"name": cluster.name}},
    }
    kube.create(request)

    def phase() -> str:
        return str((kube.get("DisqueBackup", "now", cluster.namespace).get("status") or {}).get("phase", ""))

    poll(lambda: phase() in {"Completed", "Failed"}, "the backup is made", SCHEDULED_S)
    made = kube.get("DisqueBackup", "now", cluster.namespace)["status"]
    assert made["phase"] == "Completed", made["message"]
    with pytest.raises(ApiException, match="spec cannot be changed"):
        kube.patch("DisqueBackup", "now", cluster.namespace, {"spec": {"store": {"claimName": "other"}}})
    kube.delete("DisqueBackup", "now", cluster.namespace)
    poll(lambda: kube.find("Job", made["jobName"], cluster.namespace) is None, "its Job is deleted", SCHEDULED_S)
    copy = restored(cluster, "copy", 1, s3.store, made["backupName"])
    copy.wait_running(1, within_s=RESTORE_S)
    assert copy.status["bootstrap"]["jobs"] == made["jobs"] == 0


@pytest.mark.long
def test_restored_member_that_loses_its_volume_brings_no_job_back(cluster: DisqueCluster, kube: Kube) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM, "namespace": cluster.namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}},
    }
    kube.create(claim)
    store = {"claimName": CLAIM}
    cluster.create(replicas=1, resources=SMALL, backup={"store": store, "schedule": EVERY_MINUTE})
    cluster.wait_running(1)
    with cluster.broker(0) as broker:
        for number in range(20):
            broker.call("ADDJOB", "work", f"job {number}", 0, "REPLICATE", 1, "RETRY", 600)
        broker.call("QCONF", "work", "SET", "limit", 9)
    wait_backup_begun_now(cluster)
    cluster.patch(backup={"suspend": True})
    copy = restored(cluster, "copy", 3, store, "latest")
    copy.wait_running(3, within_s=RESTORE_S)
    assert copy.status["bootstrap"]["jobs"] == 20
    with copy.brokers() as brokers:
        assert all(broker.call("QCONF", "work", "SHOW")[0][1:3] == [b"limit", b"9"] for broker in brokers)
        assert sum(int(broker.call("QLEN", "work")) for broker in brokers) == 20
        [owned] = [int(broker.call("QLEN", "work")) for broker in brokers if broker.pod == copy.pod(2)]
    lost = copy.pod(2)
    former = copy.ids()[lost]
    kube.delete("PersistentVolumeClaim", "data-copy-2", copy.namespace)
    kube.delete("Pod", lost, copy.namespace, grace_s=0)  # in order, it would transfer its jobs first
    poll(lambda: copy.ids().get(lost, former) != former, "a new member has its place", RESTORE_S)
    copy.wait_running(3, within_s=RESTORE_S)
    with copy.brokers() as brokers:
        assert sum(int(broker.call("QLEN", "work")) for broker in brokers) == 20 - owned


def test_restore_that_fails_says_why_and_succeeds_later(cluster: DisqueCluster, kube: Kube, settings: Settings) -> None:
    s3 = S3(kube, cluster.namespace, settings.image)
    source = {"store": {"url": s3.url, "secretName": "later"}}
    cluster.create(replicas=1, resources=SMALL, bootstrap={"fromBackup": source})
    found = cluster.wait_condition("Degraded", "True", RESTORE_S, "RestoreFailed")
    assert 'secret "later" not found' in found["message"]
    secret = {"name": "later", "namespace": cluster.namespace}
    kube.create({"apiVersion": "v1", "kind": "Secret", "metadata": secret, "stringData": s3.entries})

    def is_missing() -> bool:
        return "has no complete backup" in str((cluster.status.get("bootstrap") or {}).get("message", ""))

    poll(is_missing, "the status says that there is no backup", RESTORE_S)
    assert cluster.claims() == set()
