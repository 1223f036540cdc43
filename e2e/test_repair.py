"""Members without volumes that are replaced one after the other: repair makes the copies of each of them again."""

from __future__ import annotations

from typing import Any, Final

import pytest

from e2e.support.brokers import poll
from e2e.support.cluster import SETTLE_S, DisqueCluster
from e2e.support.load import Backlog, Load
from e2e.support.settings import Settings
from e2e.support.times import Times

MEMBERS: Final = 5
WITHOUT_VOLUMES: Final[dict[str, Any]] = {"storage": {"ephemeral": True}, "persistence": {"appendonly": False}}
REPAIR_S: Final = 120
JOBS: Final = {"plain": 5000, "held": 500}


def wait_repaired(cluster: DisqueCluster) -> None:
    """Wait until all brokers list each other and say that no copy is missing.

    A broker that is permanently lost counts as a holder until the operator removes it, so this waits for that first.
    """
    cluster.wait_formed(MEMBERS, within_s=SETTLE_S)

    def is_whole() -> bool:
        with cluster.brokers() as brokers:
            return all(broker.has_all_copies() for broker in brokers)

    poll(is_whole, "no copy of a job is missing", REPAIR_S)


def test_rollout_of_five_members_without_volumes_loses_no_job(cluster: DisqueCluster, load: Load, times: Times) -> None:
    cluster.create(replicas=MEMBERS, **WITHOUT_VOLUMES)
    cluster.wait_running(MEMBERS)
    ids = set(cluster.ids().values())
    with load:
        begin_s = cluster.patch(config={"tcp-backlog": "300"})
        cluster.wait(lambda status: not {member["nodeId"] for member in status["members"]} & ids, "all are new")
        cluster.wait_running(MEMBERS)
        times.since("rollout_of_5_members_without_volumes_s", begin_s)
        wait_repaired(cluster)
        account = load.settle()
    account.check(at_least=500)


@pytest.mark.long
def test_members_without_volumes_killed_one_after_the_other_lose_no_job(
    cluster: DisqueCluster, settings: Settings
) -> None:
    """No job is drained here: the pods end without a grace period, so each job survives only by new copies."""
    cluster.create(replicas=MEMBERS, **WITHOUT_VOLUMES)
    cluster.wait_running(MEMBERS)
    with Backlog(cluster.kube, cluster, settings.image, JOBS, replicate=2) as backlog:
        for ordinal in range(MEMBERS):
            uid = cluster.uid(ordinal)
            cluster.kube.delete("Pod", cluster.pod(ordinal), cluster.namespace, grace_s=0)
            cluster.wait_replaced(ordinal, uid)
            cluster.wait_running(MEMBERS)
            wait_repaired(cluster)
        backlog.consume()
        account = backlog.settle()
    account.check(at_least=sum(JOBS.values()))
