"""Jobs stay leased while a batch is worked on, whatever happens to the nodes, and come back when nobody holds them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from disqued.client import Client
from pyspark_disque.clock import Clock
from pyspark_disque.leases import Leases
from pyspark_disque.ledger import Lease
from pyspark_disque.options import Options
from support.cluster import RealCluster, RealNode

QUEUE = "q"


def options(cluster: RealCluster) -> Options:
    return Options(nodes=tuple(node.address for node in cluster.nodes), queue=QUEUE, timeout_s=1)


def leased(node: RealNode, count: int, retry_s: int = 1, **how: int) -> list[Lease]:
    """Jobs that were added and taken."""
    with Client([node.address], discover=False) as client:
        client.add_many(QUEUE, ["body"] * count, retry_s=retry_s, **how)  # type: ignore[arg-type]  # options by name
        return [Lease(job.id, job.queue, node.id) for job in client.get(QUEUE, count=count, nohang=True)]


def queued(cluster: RealCluster) -> int:
    return sum(node.call("QLEN", QUEUE) for node in cluster.running)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[RealCluster]:
    with RealCluster(tmp_path, 3) as nodes:
        yield nodes


def passes(cluster: RealCluster, seconds: float) -> None:
    """Let time pass by the clock of the brokers, during which nothing may be queued."""
    until = cluster.running[0].call("TIME")
    deadline = int(until[0]) + int(until[1]) / 1e6 + seconds

    def is_over() -> bool:
        assert queued(cluster) == 0, "a lease was lost"
        now = cluster.running[0].call("TIME")
        return int(now[0]) + int(now[1]) / 1e6 >= deadline

    cluster.wait_until(is_over)


def test_jobs_stay_leased_for_longer_than_their_retry_time_and_come_back_when_let_go(own: RealCluster) -> None:
    jobs = leased(own.nodes[0], 500, retry_s=2)
    assert len(jobs) == 500
    with closing(Leases(options(own), Clock())) as leases:
        leases.hold(jobs)
        passes(own, 5)
        leases.release(job.id for job in jobs[:100])
        own.wait_until(lambda: queued(own) == 100, "those that were let go are queued")
        assert len(leases) == 400
    own.wait_until(lambda: queued(own) == 500, "nobody holds them any more")


def test_another_node_keeps_the_lease_when_its_own_is_killed(own: RealCluster) -> None:
    jobs = leased(own.nodes[0], 200, retry_s=6, replicate=3)
    with closing(Leases(options(own), Clock())) as leases:
        leases.hold(jobs)
        own.nodes[0].kill()
        passes(own, 10)
        assert len(leases) == 200


def test_finished_and_unknown_jobs_are_forgotten(own: RealCluster) -> None:
    jobs = leased(own.nodes[0], 3, retry_s=60)
    with closing(Leases(options(own), Clock())) as leases:
        leases.hold(jobs)
        own.nodes[0].call("ACKJOB", jobs[0].id)
        for node in own.nodes:
            node.call("DELJOB", jobs[1].id)
        leases.hold(jobs)
        own.wait_until(lambda: len(leases) == 1, "only the third one is held")


def test_at_most_once_jobs_are_asked_for_once(own: RealCluster) -> None:
    jobs = leased(own.nodes[0], 5, retry_s=0, replicate=1)
    with closing(Leases(options(own), Clock())) as leases:
        leases.hold(jobs)
        own.wait_until(lambda: calls_of_working(own) == 5, "each was asked for")
        passes(own, 1.5)
        assert calls_of_working(own) == 5


def calls_of_working(cluster: RealCluster) -> int:
    stats = [node.info("commandstats").get("cmdstat_working", "calls=0,") for node in cluster.nodes]
    return sum(int(line.partition("calls=")[2].partition(",")[0]) for line in stats)


def test_it_is_said_when_a_job_can_be_kept_no_longer(own: RealCluster, caplog: pytest.LogCaptureFixture) -> None:
    jobs = leased(own.nodes[0], 2, retry_s=1, ttl_s=4)
    with caplog.at_level(logging.WARNING, "pyspark_disque"), closing(Leases(options(own), Clock())) as leases:
        leases.hold(jobs)
        own.wait_until(lambda: "half of the life" in caplog.text, "it is said")
    assert caplog.text.count("half of the life") == 1


def test_nothing_is_raised_while_all_nodes_are_away(own: RealCluster, caplog: pytest.LogCaptureFixture) -> None:
    jobs = leased(own.nodes[0], 2, retry_s=60)
    for node in own.nodes:
        node.kill()
    with caplog.at_level(logging.WARNING, "pyspark_disque"), closing(Leases(options(own), Clock())) as leases:
        leases.hold(jobs)
        own.wait_until(lambda: "can not be renewed" in caplog.text, "it is said")
        assert len(leases) == 2
