"""Caps in a cluster: how many jobs all workers have at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rates.workers import Workers, add_jobs, home_of
from support.fixtures import settled

if TYPE_CHECKING:
    from disqued.testing.cluster import Cluster, Member

TIMEOUT_S = 15
"""The default node timeout."""
CAP = 6


@pytest.fixture
def calm() -> Cluster:
    """Three nodes whose members have been the same for longer than a node timeout."""
    cluster = settled(3)
    cluster.run(seconds=TIMEOUT_S)
    return cluster


def capped(cluster: Cluster, cap: int, *options: str | int, jobs: int = 100, queue: str = "db") -> None:
    """Set a cap, and give every node jobs."""
    assert cluster.members[0].admin.call("QCONF", queue, "SET", "inflight", cap) == b"OK"
    cluster.run(milliseconds=100)
    for member in cluster.members:
        add_jobs(member, queue, jobs, *options)


def others(cluster: Cluster) -> list[Member]:
    """The nodes that are not the home."""
    home = home_of(cluster, "db")
    return [member for member in cluster.members if member is not home]


def serve_all(cluster: Cluster, *members: Member) -> int:
    """Have each of these nodes serve as many clients as it can; returns how many got a job."""
    clients = [member.client() for member in members or cluster.members for _ in range(2 * CAP)]
    for client in clients:
        client.send("GETJOB", "FROM", "db")
    cluster.run(seconds=2)
    for client in clients:
        client.disconnect()
    return sum(not client.silent for client in clients)


def test_workers_of_all_nodes_together_have_as_many_jobs_as_the_cap_says(calm: Cluster) -> None:
    capped(calm, CAP)
    workers = Workers(calm, "db", busy_ms=200)
    for member in calm.members:
        workers.start(member, 5)
    calm.run(seconds=10)
    assert workers.most_in_flight == CAP
    assert len(workers.times) >= 0.85 * CAP * 10 / 0.2
    assert min(workers.by_member.values()) >= 0.2 * len(workers.times), workers.by_member


def test_a_mutex_over_the_cluster_passes_from_node_to_node(calm: Cluster) -> None:
    capped(calm, 1)
    workers = Workers(calm, "db", busy_ms=50)
    for member in calm.members:
        workers.start(member, 2)
    calm.run(seconds=6)
    assert workers.most_in_flight == 1
    assert len(workers.times) >= 90
    assert len(workers.by_member) == 3


def test_a_job_that_another_node_acknowledges_frees_its_place(calm: Cluster) -> None:
    assert calm.members[0].admin.call("QCONF", "db", "SET", "inflight", 1) == b"OK"
    calm.run(milliseconds=100)
    one, other = others(calm)
    client = one.client()
    for body in ("a", "b"):
        client.send("ADDJOB", "db", body, 500, "REPLICATE", 3, "RETRY", 60)
        calm.until(lambda: not client.silent)
        client.next_reply()
    client.send("GETJOB", "FROM", "db")
    calm.until(lambda: not client.silent)
    job = client.next_reply()[0][1]  # type: ignore[index]
    assert isinstance(job, bytes)
    client.send("GETJOB", "FROM", "db")
    calm.run(seconds=1)
    assert client.silent
    other.admin.call("WORKING", job)
    calm.run(seconds=40)
    assert client.silent
    other.admin.call("ACKJOB", job)
    calm.run(milliseconds=100)
    assert not client.silent


def test_a_lease_that_ends_on_another_node_frees_its_place(calm: Cluster) -> None:
    assert calm.members[0].admin.call("QCONF", "db", "SET", "inflight", 1) == b"OK"
    calm.run(milliseconds=100)
    one, other = others(calm)
    client = one.client()
    client.send("ADDJOB", "db", "a", 500, "REPLICATE", 3, "RETRY", 5)
    calm.until(lambda: not client.silent)
    job = client.next_reply()
    assert isinstance(job, bytes)
    client.send("GETJOB", "FROM", "db")
    calm.until(lambda: not client.silent)
    waiting = other.client()
    waiting.send("GETJOB", "FROM", "db")
    other.admin.call("ENQUEUE", job)
    calm.run(seconds=1)
    assert not waiting.silent


def test_jobs_in_flight_stay_counted_while_the_home_changes(calm: Cluster) -> None:
    capped(calm, CAP, "RETRY", 300)
    assert serve_all(calm) == CAP
    home = home_of(calm, "db")
    assert home.admin.call("CLUSTER", "LEAVING", "YES") == b"OK"
    assert serve_all(calm, *[member for member in calm.members if member is not home]) == 0


def test_jobs_in_flight_stay_counted_when_nodes_join(calm: Cluster) -> None:
    capped(calm, CAP, "RETRY", 300)
    assert serve_all(calm) == CAP
    for _ in range(3):
        added = calm.add()
        assert calm.members[0].admin.call("CLUSTER", "MEET", added.ip.decode(), 7711) == b"OK"
        add_jobs(added, "db", 10)
    calm.until(calm.is_whole)
    calm.run(seconds=TIMEOUT_S)
    assert serve_all(calm) == 0


def test_jobs_that_a_dead_node_delivered_count_until_their_retry_time_is_over(calm: Cluster) -> None:
    capped(calm, CAP, "RETRY", 60)
    victim, other = others(calm)
    assert serve_all(calm, victim) == CAP
    victim.crash()
    calm.run(seconds=25)
    home = home_of(calm, "db")
    assert serve_all(calm, home, other) == 0
    calm.run(seconds=40)
    assert serve_all(calm, home, other) == CAP * 2 / 3


def test_a_new_home_does_not_know_what_the_dead_one_delivered(calm: Cluster) -> None:
    capped(calm, CAP, "RETRY", 300)
    home = home_of(calm, "db")
    one, other = others(calm)
    assert serve_all(calm, home) == CAP
    home.crash()
    calm.run(seconds=3 * TIMEOUT_S)
    assert serve_all(calm, one, other) == CAP * 2 / 3


def test_the_majority_of_a_partition_has_its_part_of_a_cap_and_one_alone_may_have_none(calm: Cluster) -> None:
    capped(calm, 1)
    home = home_of(calm, "db")
    one, other = others(calm)
    calm.partition([home], [one, other])
    calm.run(seconds=3 * TIMEOUT_S)
    waiting = home.client()
    waiting.send("GETJOB", "FROM", "db")
    assert serve_all(calm, home) == 0
    assert home.admin.stat("db")["limited"] == b"inflight"
    waiting.disconnect()
    assert serve_all(calm, one, other) == 1
    calm.heal()
    calm.until(calm.is_whole, within_s=60)
    calm.run(seconds=2)
    assert serve_all(calm) == 0


def test_the_parts_of_a_cap_never_exceed_it(calm: Cluster) -> None:
    capped(calm, 7)
    home = home_of(calm, "db")
    one, other = others(calm)
    calm.partition([home, one], [other])
    calm.run(seconds=3 * TIMEOUT_S)
    assert serve_all(calm, home, one) == 5
    assert serve_all(calm, other) == 2


def test_a_home_that_restarts_asks_for_the_jobs_in_flight_of_the_others(calm: Cluster) -> None:
    capped(calm, CAP, "RETRY", 300)
    home = home_of(calm, "db")
    one, other = others(calm)
    assert serve_all(calm, one) == CAP
    home.crash()
    home.restart()
    calm.until(calm.is_whole)
    home.admin.call("QCONF", "db", "SET", "inflight", CAP)
    calm.run(seconds=2)
    assert serve_all(calm, one, other) == 0


def test_lost_messages_never_raise_the_number_of_jobs_in_flight(calm: Cluster) -> None:
    capped(calm, CAP, "RETRY", 300)
    for sender in calm.members:
        for receiver in calm.members:
            if sender is not receiver:
                path = calm.network.path(sender, receiver)
                path.loss, path.duplication, path.displacement = 0.1, 0.1, 0.1
                path.delay_ms, path.jitter_ms = 10, 100
    workers = Workers(calm, "db", busy_ms=300)
    for member in calm.members:
        workers.start(member, 4)
    calm.run(seconds=40)
    assert workers.most_in_flight <= CAP
    assert len(workers.times) >= 200
