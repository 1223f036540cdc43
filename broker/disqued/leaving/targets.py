"""The nodes that can take jobs: those that stay, have a link that is not congested, and answer."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.cluster.peer import Peer
from disqued.core.cluster.zones import ZoneSpread
from disqued.core.jobs.job import Job, NodeIds
from disqued.core.runtime.state import NodeState
from disqued.placing.willingness import Willingness


class Targets:
    """The nodes that jobs are transferred to."""

    def __init__(self) -> None:
        self.willingness = Willingness()
        self.free: list[Peer] = []
        """The nodes that can be sent jobs now; `refresh` updates the list."""
        self.willing: i64 = 0
        """How many nodes answer, those with a congested link included."""
        self.linked: i64 = 0
        """How many nodes have a link."""
        self._turn: i64 = 0
        self._owner_turn: i64 = 0

    def refresh(self, state: NodeState) -> None:
        """Recompute which nodes can be sent jobs. If none of them answers, all that have a link are tried."""
        unwilling: list[Peer] = []
        free: list[Peer] = []
        willing: i64 = 0
        linked: i64 = 0
        for peer in state.view.reachable:
            link = peer.link
            if link is None or link.closed:
                continue
            linked += 1
            is_free = not link.congested
            if not self.willingness.rests(peer, state.now_ms):
                willing += 1
                if is_free:
                    free.append(peer)
            elif is_free:
                unwilling.append(peer)
        self.willing = willing
        self.linked = linked
        self.free = free if willing > 0 else unwilling

    def willing_for(self, state: NodeState, job: Job) -> i64:
        """How many of the nodes that answer can keep a job."""
        if not job.is_held:
            return self.willing
        count: i64 = 0
        for peer in state.view.reachable:
            link = peer.link
            if link is not None and not link.closed and not self.willingness.rests(peer, state.now_ms):
                count += 1 if job.is_whole_with(peer.features) else 0
        return count

    def is_willing(self, peer: Peer, now_ms: i64) -> bool:
        """Whether the node confirmed jobs lately, or was not asked."""
        return not self.willingness.rests(peer, now_ms)

    def choose(self, state: NodeState, job: Job, asked: NodeIds, count: i64, *, own_kind: bool) -> list[Peer]:
        """Choose up to `count` free nodes that were not asked yet, first those that may hold the job, then in turn.

        If nodes have zones, zones with the fewest copies come first.
        """
        delivered = job.delivered
        chosen: list[Peer] = []
        others: list[Peer] = []
        for peer in self.free:
            if peer.id in asked or (own_kind and peer.features == 0):
                continue
            if job.is_held and not job.is_whole_with(peer.features):
                continue
            if job.extra is not None and not peer.connected:  # whether it understands attributes is not known yet
                continue
            if delivered is not None and peer.id in delivered:
                chosen.append(peer)
            else:
                others.append(peer)
        spread = ZoneSpread(state.view, asked) if state.view.zoned else None
        if len(chosen) > count or spread is not None:
            chosen = self._some(chosen, count, spread)
        if len(chosen) < count:
            chosen.extend(self._some(others, count - len(chosen), spread))
        return chosen

    def _some(self, peers: list[Peer], count: i64, spread: ZoneSpread | None) -> list[Peer]:
        """Choose `count` of the peers; the next call begins with the next peer."""
        if spread is not None:
            self._turn += 1
            first: i64 = self._turn % len(peers) if peers else 0
            return spread.take(peers[first:] + peers[:first], count)
        found: list[Peer] = []
        have: i64 = len(peers)
        self._turn += 1
        at: i64 = 0
        while at < count and at < have:
            found.append(peers[(self._turn + at) % have])
            at += 1
        return found

    def next_of(self, peers: list[Peer]) -> Peer:
        """Choose one of the peers, each in its turn."""
        self._owner_turn += 1
        return peers[self._owner_turn % len(peers)]
