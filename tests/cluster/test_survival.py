"""What survives when holders of jobs are killed; copies are kept only in memory here."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from support.cluster import RealCluster, RealNode
from support.totalqueue import Workload

pytestmark = pytest.mark.slow


def nobody_has(cluster: RealCluster, job: bytes) -> bool:
    """Whether no running node knows the job."""
    return not cluster.holders(job)


def taken(node: RealNode, queue: str) -> list[bytes]:
    """ID and body of the next job of a queue."""
    found: list[bytes] = node.call("GETJOB", "FROM", queue)[0][1:]
    return found


@pytest.mark.parametrize("copies", [2, 4])
def test_job_survives_repeated_kills_while_one_holder_lives(tmp_path: Path, copies: int) -> None:
    chance = random.Random(copies)
    with RealCluster(tmp_path, 7) as cluster:
        for number in range(3):
            adder = chance.choice(cluster.nodes)
            job = adder.call("ADDJOB", "q", number, 0, "REPLICATE", copies, "RETRY", 1)
            holders = cluster.holders(job)
            assert len(holders) >= copies, "one more where one was slow"
            killed = chance.sample(holders, len(holders) - 1)
            for node in killed:
                node.kill()
            assert taken(chance.choice(cluster.running), "q") == [job, b"%d" % number]
            assert cluster.holders(job)[0].call("ACKJOB", job) == 1
            for node in killed:
                node.restart()
            cluster.wait_whole()
            cluster.wait_until(partial(nobody_has, cluster, job), "the job is collected")


def test_next_holder_requeues_the_job_when_holders_die_one_by_one(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 4) as cluster:
        job = cluster.nodes[0].call("ADDJOB", "q", "x", 0, "REPLICATE", 4, "RETRY", 1)
        for _ in range(3):
            cluster.wait_until(lambda: cluster.holders(job, "queued"), "one of them queues it")
            cluster.holders(job, "queued")[0].kill()
        assert taken(cluster.running[0], "q") == [job, b"x"]


def test_job_is_lost_and_reported_when_all_its_holders_die(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3) as cluster:
        with Workload(cluster.nodes[:1], "REPLICATE", 2, "RETRY", 1) as work:
            cluster.wait_until(lambda: len(work.account.added) > 20, "there is work")
        one, two, three = cluster.nodes
        for node in (two, three):  # only a job of the first node that both others do not keep would stay
            node.kill()
        one.restart()
        two.restart()
        three.restart()
        account = work.settle(cluster)
        assert account.undelivered, "delayed jobs were waiting when all died"
        with pytest.raises(AssertionError, match="lost"):
            account.check(at_least=1)


def restarted(node: RealNode) -> None:
    """Restart the node with empty memory."""
    node.kill()


def hung(node: RealNode) -> None:
    """Continue the suspended node."""
    node.stop()


def came_back(node: RealNode) -> None:
    """Bring the node back after either fault."""
    if node.is_running:
        node.cont()
    else:
        node.restart()


@pytest.mark.parametrize("away", [restarted, hung])
@pytest.mark.parametrize("by_an_owner", [True, False], ids=["by an owner", "by another node"])
def test_acknowledgement_survives_while_holders_are_down(
    tmp_path: Path, away: Callable[[RealNode], None], by_an_owner: bool
) -> None:
    """A node keeps an acknowledgement until the other holders know it or no longer have the job."""
    with RealCluster(tmp_path, 5) as cluster:
        one = cluster.nodes[0]
        job = one.call("ADDJOB", "q", "x", 0, "REPLICATE", 3, "RETRY", 2)
        assert taken(one, "q") == [job, b"x"]
        owners = cluster.holders(job)
        others = [node for node in cluster.nodes if node not in owners]
        absent = [node for node in owners if node is not one]
        ids = [node.id for node in absent]
        for node in absent:
            away(node)
        cluster.wait_until(lambda: all("fail" in one.view()[other] for other in ids), "they are missed")
        assert (one if by_an_owner else others[0]).call("ACKJOB", job) == by_an_owner, "it counts jobs known here"
        cluster.wait_until(lambda: one.show(job)[b"state"] == b"acked", "an owner that is there knows")  # type: ignore[index]
        for node in absent:
            came_back(node)
        cluster.wait_whole()
        cluster.wait_until(partial(nobody_has, cluster, job), "the job is collected")
        assert fetch_all(cluster) == 0, "nobody is given it again"


def fetch_all(cluster: RealCluster) -> int:
    """How many jobs a consumer can fetch from all nodes."""
    return sum(len(node.call("GETJOB", "NOHANG", "FROM", "q") or []) for node in cluster.nodes)


def test_acknowledgement_at_a_node_without_the_job_waits_for_the_only_holder(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3) as cluster:
        one, two, _ = cluster.nodes
        job = one.call("ADDJOB", "q", "x", 0, "REPLICATE", 1, "RETRY", 60)
        assert taken(one, "q") == [job, b"x"]
        missed = one.id
        one.stop()
        cluster.wait_until(lambda: "fail" in two.view()[missed], "the owner is missed")
        assert two.call("ACKJOB", job) == 0, "it counts jobs known here"
        assert two.show(job) is not None, "it keeps the acknowledgement for the owner"
        one.cont()
        cluster.wait_whole()
        cluster.wait_until(partial(nobody_has, cluster, job), "the job is collected")
