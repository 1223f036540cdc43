"""Spark's jobs in cluster mode: fill a queue while the cluster grows, shrinks and is upgraded, and drain it.

The jobs are those of manifests/spark, submitted by a pod as people do it; nothing of it needs an operator of Spark.
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
"""After each row, in the task that adds it, so that the job is at work while the cluster changes."""
SLOWLY = (
    "SELECT id AS order, repeat('x', 100) AS what, "
    f"java_method('java.lang.Thread', 'sleep', {PAUSE_MS}L) AS pause FROM range(0, {ROWS}, 1, 40)"
)
START_S = 180
UPGRADE_S = 240
KNOWN_S = 20


@pytest.fixture
def spark(kube: Kube, cluster: DisqueCluster, settings: Settings) -> Spark:
    """A namespace in which jobs of Spark may run."""
    made = Spark(kube, cluster, settings.spark_image)
    made.install()
    return made


@pytest.mark.alone  # several Javas at once take the time that others' limits count on
@pytest.mark.timeout(900)
def test_a_job_fills_a_queue_while_the_cluster_changes_and_another_drains_it(
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
    assert enqueue.is_running(), "the job was at work all the time"
    cluster.patch(image=settings.next_image)
    cluster.wait(lambda status: status.get("phase") == "Running", "is upgraded", UPGRADE_S)
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


def queued(cluster: DisqueCluster) -> int:
    """Jobs that wait, over all nodes."""
    with cluster.brokers() as brokers:
        return sum(int(broker.info("jobs")["queued_jobs"]) for broker in brokers)


MAY = {
    "spark-submit": {"create pods", "watch pods", "create configmaps", "patch services"},
    "spark-driver": {"create pods", "watch pods", "deletecollection pods", "create configmaps"},
    "spark-executor": set[str](),
}
ASKED = (
    "create pods", "watch pods", "deletecollection pods", "create configmaps", "patch services", "get secrets",
    "create pods/exec", "list nodes", "get disqueclusters.disque.dev", "create serviceaccounts", "patch roles",
)  # fmt: skip


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("account", MAY)
def test_accounts_may_do_what_spark_needs_and_see_no_secrets(account: str, namespace: str) -> None:
    user = f"system:serviceaccount:{namespace}:{account}"

    def may() -> set[str]:
        return {action for action in ASKED if can(user, namespace, *action.split())}

    # The API server learns of new roles a moment after it has taken them.
    poll(lambda: may() >= MAY[account], f"{account} may do {MAY[account]}", KNOWN_S)
    assert may() == MAY[account]


def can(user: str, namespace: str, verb: str, resource: str) -> bool:
    """Whether a user may do this in a namespace."""
    kind, _, part = resource.partition("/")
    words = ["kubectl", "auth", "can-i", verb, kind, "--subresource", part, "--as", user, "--namespace", namespace]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.startswith("yes")
