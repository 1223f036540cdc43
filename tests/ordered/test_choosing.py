"""Replicas of ordered queues spread over nodes and zones, and so do their first leaders."""

from __future__ import annotations

from collections import Counter

import pytest

from disqued.ordered.catalog import Catalog, QueueOptions, pack_create
from disqued.ordered.choosing import Candidate, choose, default_count, first_leader
from disqued.ordered.exchange import node_of


def candidates(*zones: bytes) -> list[Candidate]:
    return [Candidate(b"%040d" % number + b"log-%04d" % number, zone) for number, zone in enumerate(zones)]


def test_replicas_are_in_distinct_zones_where_possible() -> None:
    nodes = candidates(b"a", b"a", b"a", b"b", b"c")
    for number in range(50):
        chosen = choose(b"queue-%d" % number, nodes, 3)
        assert sorted(node.zone for node in nodes if node.replica in chosen) == [b"a", b"b", b"c"]


def test_zones_get_a_second_replica_when_all_have_one() -> None:
    nodes = candidates(b"a", b"a", b"b", b"b")
    chosen = choose(b"q", nodes, 4)
    assert len(set(chosen)) == 4


def test_queues_spread_over_the_nodes() -> None:
    nodes = candidates(*[b""] * 5)
    counts = Counter(node for number in range(500) for node in choose(b"queue-%d" % number, nodes, 3))
    assert len(counts) == 5
    assert max(counts.values()) < 1.3 * min(counts.values())


def test_fewer_nodes_give_fewer_replicas() -> None:
    assert len(choose(b"q", candidates(b"", b""), 3)) == 2


@pytest.mark.parametrize(("nodes", "replicas"), [(1, 1), (2, 1), (3, 3), (5, 3)])
def test_the_default_number_of_replicas_is_odd(nodes: int, replicas: int) -> None:
    assert default_count(nodes) == replicas


def test_first_leaders_spread_over_the_nodes() -> None:
    catalog = Catalog()
    nodes = candidates(*[b""] * 3)
    for number in range(30):
        name = b"queue-%d" % number
        replicas = choose(name, nodes, 3)
        lead = first_leader(catalog, replicas)
        catalog.apply(number + 1, pack_create(name, QueueOptions(), replicas, lead, bytes(16)))
    leads = Counter(queue.lead for queue in catalog.by_group.values())
    assert leads == {node_of(node.replica): 10 for node in nodes}
