"""The node that gets a lost copy: in a zone with the fewest copies, the one with more free memory of two.

The two are those with the highest scores for the job (`core.cluster.rendezvous`), which is as good as chance for the
balance. Two holders that repair a job at the same time choose the same node, so it gets one copy.
"""

from __future__ import annotations

from disqued.core.cluster.holders import lists
from disqued.core.cluster.peer import Peer
from disqued.core.cluster.rendezvous import ranked
from disqued.core.cluster.zones import ZoneSpread
from disqued.core.jobs.job import Job, NodeIds
from disqued.core.runtime.state import NodeState
from disqued.placing.willingness import Willingness


class Targets:
    """The nodes that can be asked to keep copies."""

    def __init__(self) -> None:
        self.willingness = Willingness()
        self.free: list[Peer] = []
        """The nodes with a link that is not congested, which took jobs lately or were not asked."""

    def refresh(self, state: NodeState) -> None:
        """Find the nodes that can be asked now."""
        free: list[Peer] = []
        for peer in state.view.reachable:
            link = peer.link
            if link is None or not link.answered or link.closed or link.congested:
                continue
            if not self.willingness.rests(peer, state.now_ms):
                free.append(peer)
        self.free = free

    def waits_for_link(self, listed: NodeIds) -> bool:
        """Whether a node that is not in this list could be asked if its link had room."""
        for peer in self.free:
            link = peer.link
            if link is not None and not link.closed and link.congested and not lists(listed, peer.id):
                return True
        return False

    def choose(self, state: NodeState, job: Job, listed: NodeIds) -> Peer | None:
        """A node for another copy of a job with these holders; None if there is none now."""
        peers: list[Peer] = []
        for peer in self.free:
            link = peer.link
            if link is not None and not link.congested and not link.closed and not lists(listed, peer.id):
                peers.append(peer)
        if len(peers) > 1 and state.view.zoned:
            peers = ZoneSpread(state.view, listed).fewest(peers)
        if not peers:
            return None
        if len(peers) > 2:
            first, second = ranked(job.id, [peer.id for peer in peers])[:2]
            peers = [state.view.peers[first], state.view.peers[second]]
        best = peers[0]
        for peer in peers:
            if peer.free_bytes > best.free_bytes:
                best = peer
        return best
