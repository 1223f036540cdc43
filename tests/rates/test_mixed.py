"""Clusters with nodes that know no limits: of an earlier release, of the original, or without the settings yet."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.config import Config
from disqued.node import ROOMS, Rooms
from disqued.rates.room import NAME
from disqued.testing.cluster import NO_HOOKS, Cluster, Member
from disqued.testing.local import LocalNode
from membership.stories import ScriptedNode
from rates.workers import Workers, add_jobs, excess

EARLIER = Rooms(*[room for room in ROOMS.subsystems if room.name != NAME])
"""A node without this feature."""
RATE = 10
BURST = 5


@pytest.fixture
def mixed() -> Cluster:
    """Two nodes of this release, and the last one of an earlier one, up for longer than a node timeout."""
    cluster = Cluster(2, meet=False)
    cluster.members.append(Member(3, cluster.network, Config(), None, NO_HOOKS, EARLIER))
    cluster.meet()
    cluster.run(seconds=30)
    return cluster


def test_nodes_of_this_release_keep_the_rate_among_themselves(mixed: Cluster) -> None:
    one, two, _ = mixed.members
    one.admin.call("QCONF", "mail", "SET", "rate", RATE, "burst", BURST)
    mixed.run(milliseconds=100)
    workers = Workers(mixed, "mail")
    for member in (one, two):
        add_jobs(member, "mail", 200)
        workers.start(member, 3)
    mixed.run(seconds=10)
    assert excess(workers.times, RATE) <= BURST + 1e-6
    assert len(workers.times) >= 10 * RATE * 0.9


def test_jobs_that_go_to_an_earlier_release_cost_tokens_here(mixed: Cluster) -> None:
    one, _, earlier = mixed.members
    one.admin.call("QCONF", "mail", "SET", "rate", RATE, "burst", BURST)
    mixed.run(milliseconds=100)
    add_jobs(one, "mail", 300)
    workers = Workers(mixed, "mail")
    workers.start(earlier, 3)
    mixed.run(seconds=20)
    assert excess(workers.times, RATE) <= BURST + 1e-6
    assert len(workers.times) >= 20 * RATE * 0.8


def test_jobs_in_flight_at_an_earlier_release_count_here(mixed: Cluster) -> None:
    one, _, earlier = mixed.members
    one.admin.call("QCONF", "db", "SET", "inflight", 2)
    mixed.run(milliseconds=100)
    add_jobs(one, "db", 50)
    workers = Workers(mixed, "db", busy_ms=500)
    workers.start(earlier, 3)
    workers.start(one, 3)
    mixed.run(seconds=10)
    assert workers.most_in_flight <= 2
    assert len(workers.times) >= 30


def test_a_node_that_joins_without_the_settings_does_not_raise_the_rate() -> None:
    cluster = Cluster(2)
    cluster.run(seconds=20)
    one, two = cluster.members
    one.admin.call("QCONF", "mail", "SET", "rate", RATE, "burst", BURST)
    cluster.run(seconds=1)
    workers = Workers(cluster, "mail")
    for member in (one, two):
        add_jobs(member, "mail", 300)
    new = cluster.add()
    workers.start(new, 5)
    assert one.admin.call("CLUSTER", "MEET", new.ip.decode(), 7711) == b"OK"
    cluster.run(seconds=20)
    assert excess(workers.times, RATE) <= BURST + 1e-6
    assert len(workers.times) >= 10 * RATE


def test_nodes_of_the_original_get_no_messages_about_tokens_and_count_as_members() -> None:
    local = LocalNode()
    original = ScriptedNode(local, b"10.0.0.9")
    original.join()
    client = local.client()
    client.call("QCONF", "mail", "SET", "rate", "4", "burst", 4)
    local.run(seconds=3)
    for _ in range(9):
        client.add("mail", "body", "REPLICATE", 1)
    client.take("mail", count=9)
    local.run(seconds=1)
    assert 1 <= len(client.take("mail", count=9)) <= 4
    assert client.call("INFO", "rates")
    assert local.node.state.traffic[kinds.TOKENS].sent.value == 0
    assert local.node.state.traffic[kinds.TOKENASK].sent.value == 0
