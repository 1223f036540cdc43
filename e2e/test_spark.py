"""Spark jobs in cluster mode: one fills a queue while the cluster is scaled and upgraded, another drains it.

The jobs are those of manifests/spark, which a pod submits, as in production. No Spark operator is needed.
"""

from __future__ import annotations

import subprocess
import time

import pytest

from e2e.support.brokers import poll
from e2e.support.cluster import DisqueCluster
from e2e.support.kube import Kube
from e2e.support.settings import Settings
from e2e.support.spark import Spark
from e2e.support.times import Times

ROWS = 40_000
PAUSE_MS = 4
"""Pause after each row in the task that adds it, so that the job runs while the cluster changes."""
SLOWLY = (
    "SELECT id AS order, repeat('x', 100) AS what, "
    f"java_method('java.lang.Thread', 'sleep', {PAUSE_MS}L) AS pause FROM range(0, {ROWS}, 1, 40)"
)
START_S = 180
UPGRADE_S = 240
KNOWN_S = 20
RETRY_S = 60
"""How soon jobs in the queues of a killed broker are queued again."""


@pytest.fixture
def spark(kube: Kube, cluster: DisqueCluster, settings: Settings) -> Spark:
    """A namespace prepared for Spark jobs."""
    installed = Spark(kube, cluster, settings.spark_image)
    installed.install()
    return installed


@pytest.mark.alone  # several JVMs slow other tests down, beyond their time limits
@pytest.mark.timeout(900)
def test_spark_job_fills_a_queue_while_the_cluster_changes_and_another_drains_it(
    cluster: DisqueCluster, spark: Spark, settings: Settings, times: Times
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    begin_s = time.monotonic()
    enqueue = spark.submit("enqueue", {"--sql": SLOWLY, "--partitions": None})
    enqueue.wait_running(executors=2)
    times.since("spark_job_has_executors_s", begin_s)
    poll(lambda: queued(cluster) > 0, "the first jobs are in the queue", START_S)

    cluster.patch(replicas=5)
    enqueue.kill_executor()
    cluster.wait_running(5)
    cluster.patch(replicas=3)
    cluster.wait_running(3)
    assert enqueue.is_running(), "the job must still run, or the test shows nothing"
    cluster.patch(image=settings.next_image)
    cluster.wait(lambda status: status.get("phase") == "Running", "is upgraded", UPGRADE_S)
    images = {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()}
    assert images == {settings.next_image}, "Running means that the upgrade is complete"
    assert enqueue.wait_done()["jobs"] == f"{ROWS:,}"
    cluster.wait_running(3)
    times.since("spark_enqueue_while_the_cluster_changes_s", begin_s)
    assert queued(cluster) == ROWS, "each row is one job"

    begin_s = time.monotonic()
    assert spark.submit("drain", {"--max-jobs-per-batch": "20000"}).wait_done()["jobs"] == f"{ROWS:,}"
    times.since("spark_drain_s", begin_s)
    assert spark.read("results", "/results/orders", "order") == {"rows": ROWS, "ids": ROWS, "keys": ROWS}
    with cluster.brokers() as brokers:
        poll(lambda: not any(broker.has_work() for broker in brokers), "no job is left on any node", 60)


@pytest.mark.alone
@pytest.mark.timeout(900)
def test_every_row_arrives_while_brokers_are_killed_one_after_the_other(
    kube: Kube, cluster: DisqueCluster, spark: Spark
) -> None:
    """A killed broker restarts with its file, which is synced before each reply, so no job and no key is lost.

    Its queues are not restored: their jobs are queued again after RETRY, possibly on two nodes.
    """
    cluster.create(replicas=3, persistence={"fsync": "always"})
    cluster.wait_running(3)
    options = {"--sql": SLOWLY, "--partitions": None, "--retry": f"{RETRY_S}s"}
    enqueue = spark.submit("enqueue", options)
    enqueue.wait_running(executors=2)
    for ordinal in (0, 1, 2):
        wait_added(cluster)
        former = cluster.uid(ordinal)
        kube.delete("Pod", cluster.pod(ordinal), cluster.namespace, grace_s=0)
        cluster.wait_replaced(ordinal, former)
        cluster.wait_formed(3)
    assert enqueue.is_running(), "the job must still run, or the test shows nothing"
    assert enqueue.wait_done()["jobs"] == f"{ROWS:,}"
    poll(lambda: queued(cluster) >= ROWS, "all jobs are queued again", 3 * RETRY_S)
    spark.submit("drain", {"--max-jobs-per-batch": "20000"}).wait_done()
    read = spark.read("results", "/results/orders", "order")
    assert read["ids"] == read["keys"] == ROWS, "each row is one job, with one key"


def wait_added(cluster: DisqueCluster) -> None:
    """Wait until more jobs are in the queue than now."""
    before = queued(cluster)
    poll(lambda: queued(cluster) > before, "jobs are added", START_S)


def queued(cluster: DisqueCluster) -> int:
    """Return the number of queued jobs on all nodes."""
    with cluster.brokers() as brokers:
        return sum(int(broker.info("jobs")["queued_jobs"]) for broker in brokers)


ALLOWED = {
    "spark-submit": {"create pods", "watch pods", "create configmaps", "patch services"},
    "spark-driver": {"create pods", "watch pods", "deletecollection pods", "create configmaps"},
    "spark-executor": set[str](),
}
CHECKED = (
    "create pods", "watch pods", "deletecollection pods", "create configmaps", "patch services", "get secrets",
    "create pods/exec", "list nodes", "get disqueclusters.disque.dev", "create serviceaccounts", "patch roles",
)  # fmt: skip


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("account", ALLOWED)
def test_service_accounts_have_the_permissions_that_spark_needs_and_no_others(account: str, namespace: str) -> None:
    user = f"system:serviceaccount:{namespace}:{account}"

    def allowed() -> set[str]:
        return {action for action in CHECKED if can(user, namespace, *action.split())}

    # New roles take effect a moment after they are created.
    poll(lambda: allowed() >= ALLOWED[account], f"{account} may do {ALLOWED[account]}", KNOWN_S)
    assert allowed() == ALLOWED[account]


def can(user: str, namespace: str, verb: str, resource: str) -> bool:
    """Return whether a user may do this in a namespace."""
    kind, _, part = resource.partition("/")
    words = ["kubectl", "auth", "can-i", verb, kind, "--subresource", part, "--as", user, "--namespace", namespace]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.startswith("yes")
