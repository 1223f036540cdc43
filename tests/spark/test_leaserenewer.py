"""Jobs stay leased while a batch runs, even if nodes fail, and are requeued once they are released."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from disqued.client import Client
from pyspark_disque.clock import Clock
from pyspark_disque.leaserenewer import LeaseRenewer
from pyspark_disque.offsets import JobGroup
from pyspark_disque.options import Options
from support.cluster import RealCluster, RealNode

QUEUE = "q"


def options(cluster: RealCluster) -> Options:
    return Options(nodes=tuple(node.address for node in cluster.nodes), queue=QUEUE, timeout_s=1)


def leased(node: RealNode, count: int, retry_s: int = 1, **how: int) -> list[JobGroup]:
    """Add jobs, lease them and return them, as one group."""
    with Client([node.address], discover=False) as client:
        client.add_many(QUEUE, ["body"] * count, retry_s=retry_s, **how)  # type: ignore[arg-type]  # options by name
        return [JobGroup(node.id, QUEUE, tuple(job.id.encode() for job in client.get(QUEUE, count=count, nohang=True)))]


def queued(cluster: RealCluster) -> int:
    return sum(node.call("QLEN", QUEUE) for node in cluster.running)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[RealCluster]:
    with RealCluster(tmp_path, 3) as nodes:
        yield nodes


def stays_leased(cluster: RealCluster, seconds: float) -> None:
    """Wait by the clock of the brokers, and check that no job is requeued meanwhile."""
    until = cluster.running[0].call("TIME")
    deadline = int(until[0]) + int(until[1]) / 1e6 + seconds

    def is_over() -> bool:
        assert queued(cluster) == 0, "a lease was lost"
        now = cluster.running[0].call("TIME")
        return int(now[0]) + int(now[1]) / 1e6 >= deadline

    cluster.wait_until(is_over)


@pytest.mark.slow
@pytest.mark.long
def test_held_jobs_stay_leased_beyond_their_retry_time_and_are_requeued_when_released(own: RealCluster) -> None:
    first, second = leased(own.nodes[0], 100, retry_s=2), leased(own.nodes[0], 400, retry_s=2)
    with closing(LeaseRenewer(options(own), Clock())) as renewer:
        renewer.hold(1, first)
        renewer.hold(2, second)
        assert len(renewer) == 500
        stays_leased(own, 5)
        renewer.release(1)
        own.wait_until(lambda: queued(own) == 100, "the released jobs are queued")
        assert len(renewer) == 400
    own.wait_until(lambda: queued(own) == 500, "all jobs are queued")


def test_first_working_is_sent_after_a_third_of_the_lease(own: RealCluster) -> None:
    time = {"now_s": 100.0}
    jobs = leased(own.nodes[0], 300, retry_s=60)
    with closing(LeaseRenewer(options(own), Clock(lambda: time["now_s"]))) as renewer:
        renewer.hold(1, jobs, requeue_at_s=130.0)
        time["now_s"] = 109.0
        renewer.hold(2, [])
        assert calls_of_working(own) == 0
        time["now_s"] = 110.5
        renewer.hold(2, [])
        own.wait_until(lambda: calls_of_working(own) == 300, "WORKING was sent for each job")
        time["now_s"] = 130.0
        renewer.hold(2, [])
        assert calls_of_working(own) == 300, "the next one follows after a third of the retry time"
        time["now_s"] = 131.0
        renewer.hold(2, [])
        own.wait_until(lambda: calls_of_working(own) == 600, "WORKING was sent again")


@pytest.mark.slow
@pytest.mark.long
def test_another_node_renews_the_lease_when_the_leasing_node_is_killed(own: RealCluster) -> None:
    jobs = leased(own.nodes[0], 200, retry_s=6, replicate=3)
    with closing(LeaseRenewer(options(own), Clock())) as renewer:
        renewer.hold(1, jobs)
        own.nodes[0].kill()
        stays_leased(own, 10)
        assert len(renewer) == 200


def test_acknowledged_and_unknown_jobs_are_released(own: RealCluster) -> None:
    jobs = leased(own.nodes[0], 3, retry_s=60)
    ids = jobs[0].ids
    with closing(LeaseRenewer(options(own), Clock())) as renewer:
        renewer.hold(1, jobs)
        own.nodes[0].call("ACKJOB", ids[0])
        for node in own.nodes:
            node.call("DELJOB", ids[1])
        renewer.hold(1, jobs)
        own.wait_until(lambda: len(renewer) == 1, "only the third job is held")


def test_at_most_once_jobs_get_one_working_only(own: RealCluster) -> None:
    jobs = leased(own.nodes[0], 5, retry_s=0, replicate=1)
    with closing(LeaseRenewer(options(own), Clock())) as renewer:
        renewer.hold(1, jobs)
        own.wait_until(lambda: calls_of_working(own) == 5, "WORKING was sent for each job")
        stays_leased(own, 1.5)
        assert calls_of_working(own) == 5


def calls_of_working(cluster: RealCluster) -> int:
    stats = [node.info("commandstats").get("cmdstat_working", "calls=0,") for node in cluster.nodes]
    return sum(int(line.partition("calls=")[2].partition(",")[0]) for line in stats)


def test_warning_is_logged_once_when_leases_cannot_be_renewed_any_more(
    own: RealCluster, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = leased(own.nodes[0], 2, retry_s=1, ttl_s=4)
    with caplog.at_level(logging.WARNING, "pyspark_disque"), closing(LeaseRenewer(options(own), Clock())) as renewer:
        renewer.hold(1, jobs)
        own.wait_until(lambda: "cannot renew the lease" in caplog.text, "the warning is logged")
    assert caplog.text.count("cannot renew the lease") == 1


def test_warning_is_logged_and_nothing_raised_while_all_nodes_are_down(
    own: RealCluster, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = leased(own.nodes[0], 2, retry_s=60)
    for node in own.nodes:
        node.kill()
    with caplog.at_level(logging.WARNING, "pyspark_disque"), closing(LeaseRenewer(options(own), Clock())) as renewer:
        renewer.hold(1, jobs)
        own.wait_until(lambda: "cannot renew leases" in caplog.text, "the warning is logged")
        assert len(renewer) == 2
