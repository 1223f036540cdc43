"""Spreads the copies of a job over zones: the next copy goes to a zone that has the fewest.

A zone is a name that a node announces (`cluster-zone`), for example that of a data centre. Zones only matter if those
of the nodes differ (`ClusterView.zoned`).
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.cluster.peer import Peer
from disqued.core.cluster.view import ClusterView
from disqued.core.jobs.job import NodeIds


class ZoneSpread:
    """How many copies of one job each zone has."""

    def __init__(self, view: ClusterView, holders: NodeIds) -> None:
        self._copies: dict[bytes, int] = {}
        for node_id in holders:
            if node_id == view.node_id:
                self._count(view.zone)
            else:
                peer = view.peers.get(node_id)
                if peer is not None:
                    self._count(peer.zone)

    def _count(self, zone: bytes) -> None:
        self._copies[zone] = self._copies.get(zone, 0) + 1

    def _rank(self, peer: Peer) -> i64:
        """Lower ranks are preferred: zones with fewer copies. An unknown zone may be one with or without a copy."""
        return 2 * i64(self._copies.get(peer.zone, 0)) if peer.zone else 1

    def fewest(self, peers: list[Peer]) -> list[Peer]:
        """The peers in the zones that have the fewest copies; `peers` must not be empty."""
        found: list[Peer] = []
        fewest: i64 = 0
        for peer in peers:
            rank: i64 = self._rank(peer)
            if not found or rank < fewest:
                found = []
                fewest = rank
            if rank == fewest:
                found.append(peer)
        return found

    def take(self, peers: list[Peer], count: i64) -> list[Peer]:
        """Choose up to `count` of the peers, which get a copy. Among equals, those that come first are chosen."""
        left = list(peers)
        chosen: list[Peer] = []
        while left and len(chosen) < count:
            best = left[0]
            fewest: i64 = self._rank(best)
            for peer in left:
                rank: i64 = self._rank(peer)
                if rank < fewest:
                    best = peer
                    fewest = rank
            left.remove(best)
            chosen.append(best)
            self._count(best.zone)
        return chosen
