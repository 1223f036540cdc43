"""Which node is the rate home of a queue, and which members this node can see.

The rate home grants the tokens of a queue. It is the node with the highest score for the name
(`core.cluster.rendezvous`) among this node and those that it can reach and that know tokens. A node that leaves is no
home.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.cluster.rendezvous import ranked
from disqued.core.runtime.state import NodeState

_OVERDUE_SHARE: Final = 2
"""A member that has not answered a PING for half of the node timeout does not count as seen. Its own side of a
partition can choose another home only after a whole one."""


class Homes:
    """The candidates of one node."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._candidates: list[bytes] = [state.view.node_id]
        self.version: i64 = 1
        """Increases when the candidates change."""
        self.stable_ms: i64 = state.now_ms
        """Since when they are the same."""
        self._generation: i64 = -1
        self._leaving: bool = False

    def refresh(self) -> bool:
        """Look at the members again; returns whether the candidates changed."""
        state = self._state
        view = state.view
        self._generation = view.generation
        self._leaving = view.leaving
        found = [peer.id for peer in view.reachable if peer.features & kinds.FEATURE_TOKENS]
        if not view.leaving or not found:
            found.append(view.node_id)
        found.sort()
        if found == self._candidates:
            return False
        self._candidates = found
        self.version += 1
        self.stable_ms = state.now_ms
        return True

    @property
    def outdated(self) -> bool:
        """Whether the members may have changed since `refresh`."""
        view = self._state.view
        return view.generation != self._generation or view.leaving != self._leaving

    def home_of(self, name: bytes) -> bytes:
        """The ID of the rate home of a queue, which may be this node."""
        if len(self._candidates) == 1:
            return self._candidates[0]
        return ranked(name, self._candidates)[0]

    @property
    def settled(self) -> bool:
        """Whether all members have certainly chosen the same homes as this node: nothing changed for long."""
        state = self._state
        return state.view.size == 1 or state.now_ms - self.stable_ms >= state.config.cluster_node_timeout

    def sees(self, peer: Peer) -> bool:
        """Whether a node is a member that answers."""
        if peer.in_handshake or peer.failing:
            return False
        state = self._state
        overdue_ms: i64 = state.config.cluster_node_timeout // _OVERDUE_SHARE
        return peer.ping_sent_ms == 0 or state.now_ms - peer.ping_sent_ms <= overdue_ms

    def seen(self) -> list[Peer]:
        """The other members that answer."""
        return [peer for peer in self._state.view.peers.values() if self.sees(peer)]
