"""Which nodes can fire schedules, as this node sees it, and whether they are the majority."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.bus.kinds import FEATURE_SCHEDULES
from disqued.core.cluster.rendezvous import score

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


class Candidates:
    """The members as they were when this was made."""

    def __init__(self, state: NodeState) -> None:
        view = state.view
        limit_ms = state.config.cluster_max_clock_skew
        self.size = int(view.size)
        """How many members there are."""
        self.node_ids: list[bytes] = []
        """The nodes that can fire: not one that leaves, or whose clock is too far ahead."""
        self.voters: list[bytes] = []
        """The other members that must agree before a run begins."""
        self.lenient = 0
        """Members that answer and know no schedules: they count as if they agreed."""
        self.unknown = 0
        """Members that may answer soon: this node has just started and does not know yet what they can do."""
        if not view.leaving and not state.clock_refusal:
            self.node_ids.append(view.node_id)
        for peer in view.peers.values():
            if peer.in_handshake or peer.failing:
                continue
            if not peer.features & FEATURE_SCHEDULES:
                if peer.connected or peer.features != 0:
                    self.lenient += 1
                else:
                    self.unknown += 1
                continue
            self.voters.append(peer.id)
            if peer.reachable and not _is_ahead(peer, limit_ms):
                self.node_ids.append(peer.id)

    def is_like(self, other: Candidates) -> bool:
        """Whether nothing has changed."""
        return (
            self.size == other.size
            and self.node_ids == other.node_ids
            and self.voters == other.voters
            and self.lenient == other.lenient
            and self.unknown == other.unknown
        )

    def needed(self) -> int:
        """How many members are a majority."""
        return self.size // 2 + 1

    @property
    def have_majority(self) -> bool:
        """Whether this node and the members that answer it are one."""
        return 1 + self.lenient + len(self.voters) >= self.needed()

    def first(self, name: bytes) -> bytes:
        """The node that fires a schedule: the one with the highest score; empty if there is none."""
        best = b""
        best_score = b""
        for node_id in self.node_ids:
            its = score(name, node_id)
            if (its, node_id) > (best_score, best):
                best_score = its
                best = node_id
        return best


def _is_ahead(peer: Peer, limit_ms: int) -> bool:
    """Whether the clock of a node is so far ahead that it is, or soon will be, in quarantine."""
    return limit_ms > 0 and peer.skew_known and peer.skew_ms > limit_ms
