"""The parts of a limit that members give to a home: each to one home at a time, and what becomes of their tokens."""

from __future__ import annotations

import pytest

from disqued.testing.cluster import Cluster
from disqued.testing.sim import simulate
from rates.workers import Workers, add_jobs, excess, home_of

RATE = 10
BURST = 5
TIMEOUT_S = 15
"""The default node timeout."""


def limited(cluster: Cluster, *settings: str | int) -> Workers:
    """Set limits on nodes that are up for long, and give every node jobs."""
    cluster.run(seconds=TIMEOUT_S)
    assert cluster.members[0].admin.call("QCONF", "mail", "SET", *settings) == b"OK"
    cluster.run(milliseconds=100)
    for member in cluster.members:
        add_jobs(member, "mail", 300)
    return Workers(cluster, "mail")


def test_a_member_gives_its_part_to_a_new_home_after_the_tokens_of_the_former_one_are_over(cluster: Cluster) -> None:
    workers = limited(cluster, "rate", RATE, "burst", BURST)
    for member in cluster.members:
        workers.start(member, 3)
    cluster.run(seconds=5)
    home = home_of(cluster, "mail")
    assert home.admin.call("CLUSTER", "LEAVING", "YES") == b"OK"
    cluster.run(seconds=1)
    since = cluster.network.now_ms
    cluster.run(seconds=1)
    assert workers.since(since) == 0
    cluster.run(seconds=2)
    assert workers.since(since) >= RATE
    assert home.admin.call("CLUSTER", "LEAVING", "NO") == b"OK"
    cluster.run(seconds=10)
    assert excess(workers.times, RATE) <= BURST + 1e-6


def test_parts_that_were_not_renewed_come_back_with_the_tokens_that_they_had(cluster: Cluster) -> None:
    workers = limited(cluster, "rate", "1/h", "burst", 6)
    workers.acking = False
    for member in cluster.members[:2]:
        workers.start(member, 2)
        cluster.run(seconds=10)
    assert len(workers.times) == 4
    workers.start(cluster.members[2], 5)
    cluster.run(seconds=10)
    assert len(workers.times) == 6


def test_a_full_bucket_of_less_than_a_token_gives_one_and_owes_the_rest(cluster: Cluster) -> None:
    workers = limited(cluster, "rate", "1/s", "burst", 1)
    home = home_of(cluster, "mail")
    before = cluster.network.now_ms
    workers.start(home, 2)
    assert len(workers.times) == 1
    cluster.run(seconds=20)
    assert 18 <= workers.since(before) <= 21
    assert excess(workers.times, 1) <= 1 + 1e-6


def test_a_node_that_is_reset_has_limits_of_its_own(cluster: Cluster) -> None:
    workers = limited(cluster, "rate", RATE, "burst", BURST)
    one, other, apart = cluster.members
    for member in (one, other):
        workers.start(member, 3)
    assert apart.admin.call("CLUSTER", "RESET", "SOFT") == b"OK"
    for member in (one, other):
        member.admin.call("CLUSTER", "FORGET", apart.id)
    apart.admin.call("QCONF", "mail", "SET", "rate", RATE, "burst", BURST)
    add_jobs(apart, "mail", 300)
    workers.start(apart, 3)
    cluster.run(seconds=10)
    before = dict(workers.by_member)
    cluster.run(seconds=10)
    more = {member: workers.by_member[member] - before[member] for member in cluster.members}
    assert more[apart] >= 9 * RATE
    assert 9 * RATE <= more[one] + more[other] <= 10 * RATE + BURST


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "mix"),
    [
        pytest.param(27, "slow", id="two homes count one member while links are too slow for PING"),
        pytest.param(26, "membership", id="nodes leave, join, and are forgotten"),
        pytest.param(38, "membership", id="nodes join and are reset"),
        pytest.param(8, "all", id="a node is reset while links break"),
    ],
)
def test_runs_that_once_exceeded_the_rate(seed: int, mix: str) -> None:
    assert simulate(seed, mix).violations == []
