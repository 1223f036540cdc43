"""Choosing the replicas of a new ordered queue, and which of them leads first.

Rendezvous hashing ranks the nodes for the name of the queue, so queues spread evenly. Zones come first: the next
replica goes to a zone that has the fewest, if the zones of the nodes are known. The first leader is the replica whose
node is the first leader of the fewest queues in the catalog.
"""

from __future__ import annotations

from typing import NamedTuple

from disqued.core.cluster.rendezvous import ranked
from disqued.ordered.catalog import Catalog
from disqued.ordered.exchange import node_of

DEFAULT_REPLICAS = 3


class Candidate(NamedTuple):
    """A node that may have a replica."""

    replica: bytes
    """The identity that its replica would have."""
    zone: bytes


def default_count(nodes: int) -> int:
    """How many replicas a queue has if nobody says: 3, or the largest odd number of nodes below."""
    return DEFAULT_REPLICAS if nodes >= DEFAULT_REPLICAS else 1


def choose(name: bytes, candidates: list[Candidate], count: int) -> tuple[bytes, ...]:
    """The replicas of a new queue, at most `count`."""
    by_node = {node_of(candidate.replica): candidate for candidate in candidates}
    left = [by_node[node_id] for node_id in ranked(name, sorted(by_node))]
    chosen: list[Candidate] = []
    while left and len(chosen) < count:
        used = [candidate.zone for candidate in chosen if candidate.zone]
        best = min(left, key=lambda candidate: used.count(candidate.zone))
        left.remove(best)
        chosen.append(best)
    return tuple([candidate.replica for candidate in chosen])


def first_leader(catalog: Catalog, replicas: tuple[bytes, ...]) -> bytes:
    """The node that leads the group at first."""
    leads: dict[bytes, int] = {}
    for queue in catalog.by_group.values():
        leads[queue.lead] = leads.get(queue.lead, 0) + 1
    nodes = [node_of(replica) for replica in replicas]
    return min(nodes, key=lambda node_id: leads.get(node_id, 0))
