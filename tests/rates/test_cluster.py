"""Rates in a cluster: what all nodes together deliver, in calm and while nodes fail, leave, join and are cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rates.workers import Workers, add_jobs, excess, home_of
from support.fixtures import settled

if TYPE_CHECKING:
    from disqued.testing.cluster import Cluster, Member

RATE = 10
BURST = 5
TIMEOUT_S = 15
"""The default node timeout."""


def limited(cluster: Cluster, *settings: str | int, jobs: int = 400, queue: str = "mail") -> Workers:
    """Set limits, and give every node jobs."""
    first = cluster.members[0]
    assert first.admin.call("QCONF", queue, "SET", *settings) == b"OK"
    cluster.run(milliseconds=100)
    for member in cluster.members:
        add_jobs(member, queue, jobs)
    return Workers(cluster, queue)


@pytest.fixture
def workers(cluster: Cluster) -> Workers:
    """Workers of a queue with a rate, on three nodes with jobs; none has begun."""
    return limited(cluster, "rate", RATE, "burst", BURST)


def others(cluster: Cluster, queue: str = "mail") -> list[Member]:
    """The nodes that are not the rate home."""
    home = home_of(cluster, queue)
    return [member for member in cluster.members if member is not home]


def test_all_nodes_together_deliver_the_rate_and_each_gets_its_turn(cluster: Cluster, workers: Workers) -> None:
    for member in cluster.members:
        workers.start(member, 5)
    cluster.run(seconds=20)
    assert excess(workers.times, RATE) <= BURST + 1e-6
    assert len(workers.times) >= 20 * RATE + BURST - 6
    assert min(workers.by_member.values()) >= 20 * RATE / 3 - 10, workers.by_member


def test_one_node_with_clients_gets_the_whole_rate_whether_it_is_the_home_or_not(cluster: Cluster) -> None:
    for number in range(4):
        queue = f"mail-{number}"
        workers = limited(cluster, "rate", RATE, "burst", 1, queue=queue)
        workers.start(cluster.members[0], 20)
        cluster.run(seconds=10)
        assert excess(workers.times, RATE) <= 1 + 1e-6
        assert len(workers.times) >= 10 * RATE * 0.85, home_of(cluster, queue).number


def test_a_client_of_another_node_than_the_home_gets_its_job_after_one_round_trip(cluster: Cluster) -> None:
    cluster.run(seconds=TIMEOUT_S)
    workers = limited(cluster, "rate", "1/m", "burst", 3, jobs=0)
    other, *_ = others(cluster)
    workers.start(other, 2)
    cluster.run(seconds=1)
    cluster.forget_sent()
    add_jobs(other, "mail", 1)
    cluster.run(milliseconds=3)
    assert len(workers.times) == 1
    cluster.run(seconds=5)
    assert len(cluster.sent("TOKENASK")) <= 4
    assert not cluster.sent("TOKENASK", to=other)


def test_jobs_come_to_the_node_whose_clients_wait(cluster: Cluster) -> None:
    workers = limited(cluster, "rate", RATE, "burst", BURST, jobs=0)
    home = home_of(cluster, "mail")
    one, other = others(cluster)
    for worker in (one, home):
        workers.start(worker, 3)
        cluster.run(seconds=1)
        add_jobs(other, "mail", 60)
        cluster.run(seconds=10)
    assert len(workers.times) >= 115
    assert excess(workers.times, RATE) <= BURST + 1e-6


def test_a_high_rate_is_reached_and_a_tenth_of_a_second_is_the_default_burst(cluster: Cluster) -> None:
    workers = limited(cluster, "rate", 600, jobs=1500)
    for member in cluster.members:
        workers.start(member, 30)
    cluster.run(seconds=4)
    assert excess(workers.times, 600) <= 60 + 1e-6
    assert len(workers.times) >= 4 * 600 * 0.95


def test_tokens_that_nobody_used_are_given_back(cluster: Cluster) -> None:
    cluster.run(seconds=TIMEOUT_S)
    workers = limited(cluster, "rate", "1/h", "burst", 2, jobs=5)
    one, other = others(cluster)
    waiting = one.client()
    waiting.send("GETJOB", "FROM", "mail")
    waiting.disconnect()
    cluster.run(milliseconds=500)
    workers.start(other, 5)
    cluster.run(seconds=3)
    assert len(workers.times) == 2


def test_the_home_is_killed_and_no_window_has_more_than_the_rate_and_the_burst(
    cluster: Cluster, workers: Workers
) -> None:
    for member in cluster.members:
        workers.start(member, 5)
    cluster.run(seconds=5)
    home = home_of(cluster, "mail")
    home.crash()
    cluster.run(seconds=2.5 * TIMEOUT_S)
    since = cluster.network.now_ms
    cluster.run(seconds=10)
    assert excess(workers.times, RATE) <= BURST + 1e-6
    assert 10 * RATE * 2 / 3 * 0.9 <= workers.since(since) <= 10 * RATE * 2 / 3 + BURST
    home.restart()
    cluster.until(cluster.is_whole)
    cluster.run(seconds=2)
    since = cluster.network.now_ms
    cluster.run(seconds=10)
    assert excess(workers.times, RATE) <= BURST + 1e-6
    assert workers.since(since) >= 10 * RATE * 0.9


def test_the_home_leaves_and_the_next_one_grants_after_two_seconds(cluster: Cluster, workers: Workers) -> None:
    for member in cluster.members:
        workers.start(member, 5)
    cluster.run(seconds=5)
    home = home_of(cluster, "mail")
    assert home.admin.call("CLUSTER", "LEAVING", "YES") == b"OK"
    cluster.run(seconds=2.2)
    since = cluster.network.now_ms
    cluster.run(seconds=5)
    assert excess(workers.times, RATE) <= BURST + 1e-6
    assert workers.since(since) >= 5 * RATE * 0.9


def test_nodes_join_and_the_rate_stays_the_same(cluster: Cluster, workers: Workers) -> None:
    for member in cluster.members:
        workers.start(member, 5)
    cluster.run(seconds=5)
    for _ in range(3):
        member = cluster.add()
        assert cluster.members[0].admin.call("CLUSTER", "MEET", member.ip.decode(), 7711) == b"OK"
        workers.start(member, 5)
    cluster.until(cluster.is_whole)
    since = cluster.network.now_ms
    cluster.run(seconds=20)
    assert excess(workers.times, RATE) <= BURST + 1e-6
    assert workers.since(since) >= 20 * RATE * 0.85


@pytest.mark.parametrize("alone", [True, False], ids=["home-alone", "home-with-majority"])
def test_each_side_of_a_partition_has_its_part_of_the_rate(
    cluster: Cluster,
    workers: Workers,
    alone: bool,
) -> None:
    for member in cluster.members:
        workers.start(member, 5)
    cluster.run(seconds=5)
    home = home_of(cluster, "mail")
    one, other = others(cluster)
    sides = [[home], [one, other]] if alone else [[home, one], [other]]
    cluster.partition(*sides)
    cluster.run(seconds=3 * TIMEOUT_S)
    since = cluster.network.now_ms
    before = dict(workers.by_member)
    cluster.run(seconds=30)
    got = [sum(workers.by_member[member] - before[member] for member in side) for side in sides]
    for side, count in zip(sides, got, strict=True):
        share = len(side) / 3
        assert 30 * RATE * share * 0.85 <= count <= 30 * RATE * share + BURST
    cluster.heal()
    cluster.until(cluster.is_whole, within_s=60)
    cluster.run(seconds=20)
    assert excess(workers.times, RATE) <= BURST + 1e-6
    assert workers.since(since) >= 30 * RATE * 0.85


def test_lost_messages_about_tokens_never_raise_the_rate(cluster: Cluster, workers: Workers) -> None:
    for member in cluster.members:
        workers.start(member, 5)
    for sender in cluster.members:
        for receiver in cluster.members:
            if sender is not receiver:
                path = cluster.network.path(sender, receiver)
                path.loss, path.duplication, path.displacement = 0.1, 0.1, 0.1
                path.delay_ms, path.jitter_ms = 20, 200
    cluster.run(seconds=60)
    assert excess(workers.times, RATE) <= BURST + 1e-6
    assert len(workers.times) >= 60 * RATE * 0.5


def test_a_node_whose_home_does_not_answer_says_so(cluster: Cluster, workers: Workers) -> None:
    other, *_ = others(cluster)
    workers.start(other, 3)
    cluster.run(seconds=1)
    home_of(cluster, "mail").pause()
    cluster.run(seconds=3)
    assert other.admin.stat("mail")["limited"] == b"home"


def test_a_new_node_that_is_the_home_takes_over_without_an_extra_burst(cluster: Cluster) -> None:
    queues = [f"mail-{number}" for number in range(12)]
    groups = [limited(cluster, "rate", RATE, "burst", BURST, jobs=200, queue=queue) for queue in queues]
    for workers in groups:
        for member in cluster.members:
            workers.start(member, 3)
    cluster.run(seconds=3)
    before = {queue: home_of(cluster, queue) for queue in queues}
    added = cluster.add()
    assert cluster.members[0].admin.call("CLUSTER", "MEET", added.ip.decode(), 7711) == b"OK"
    cluster.until(cluster.is_whole)
    cluster.run(seconds=20)
    assert any(home_of(cluster, queue) is not before[queue] for queue in queues)
    for workers in groups:
        assert excess(workers.times, RATE) <= BURST + 1e-6
        assert len(workers.times) >= 20 * RATE * 0.8


def test_isolated_nodes_each_have_their_part(cluster: Cluster) -> None:
    workers = limited(cluster, "rate", 3, "burst", 3, jobs=200)
    for member in cluster.members:
        workers.start(member, 2)
    cluster.run(seconds=3)
    cluster.partition()
    cluster.run(seconds=60)
    assert excess(workers.times, 3) <= 3 + 1e-6
    assert min(workers.by_member.values()) > 30


def test_two_nodes_keep_the_rate_when_one_is_gone(pair: Cluster) -> None:
    workers = limited(pair, "rate", 4, "burst", 2, jobs=200)
    for member in pair.members:
        workers.start(member, 2)
    pair.run(seconds=3)
    pair.members[0].crash()
    pair.run(seconds=40)
    since = pair.network.now_ms
    pair.run(seconds=20)
    assert excess(workers.times, 4) <= 2 + 1e-6
    assert 35 <= workers.since(since) <= 42


def test_ten_nodes_need_few_messages() -> None:
    ten = settled(10)
    ten.run(seconds=TIMEOUT_S)
    workers = limited(ten, "rate", RATE, "burst", BURST, jobs=100)
    ten.forget_sent()
    for member in ten.members:
        workers.start(member, 2)
    ten.run(seconds=20)
    assert excess(workers.times, RATE) <= BURST + 1e-6
    assert len(workers.times) >= 20 * RATE * 0.95
    assert min(workers.by_member.values()) >= 15
    per_second = len(ten.sent("TOKENASK")) / 20
    assert per_second <= 9 * 10 + 2 * RATE, per_second


def test_a_link_that_works_in_one_direction_never_raises_the_rate(cluster: Cluster, workers: Workers) -> None:
    for member in cluster.members:
        workers.start(member, 5)
    cluster.run(seconds=5)
    home = home_of(cluster, "mail")
    for member in others(cluster):
        cluster.cut(home, member)
    cluster.run(seconds=3 * TIMEOUT_S)
    cluster.heal()
    cluster.until(cluster.is_whole, within_s=60)
    cluster.run(seconds=5)
    assert excess(workers.times, RATE) <= BURST + 1e-6
