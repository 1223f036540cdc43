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
from disqued.rates.payload import NOT_GIVEN

VALID_MS: Final = 1000
"""How long a node may use a token, from the time at which it sent the TOKENASK that the grant answers."""
LEASE_MS: Final = 1000
"""How long a home has the part of a member, from the time of the stamp that the member repeated."""
_WAIT_MS: Final = LEASE_MS + VALID_MS + LEASE_MS // 10
"""How long a member gives its part to nobody after it chose another home: until the tokens that the former one granted
by it are over. A tenth for clocks that do not run alike."""
NEVER: Final = -1
_KEPT: Final = 8
"""How many former candidates are remembered."""
_MOST_CACHED: Final = 10_000
_OVERDUE_SHARE: Final = 2
"""A member that has not answered a PING for half of the node timeout does not count as seen."""


class _Era:
    """A time with the same candidates. Without any: an earlier process of this node, or another cluster of it."""

    def __init__(self, since_ms: i64, candidates: list[bytes]) -> None:
        self.since_ms = since_ms
        self.candidates = candidates


class Homes:
    """The candidates of one node, and to which homes it has given its part of the limits."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._candidates: list[bytes] = [state.view.node_id]
        self._eras: list[_Era] = [_Era(state.now_ms, []), _Era(state.now_ms, self._candidates)]
        """The last one is the present."""
        self._given: dict[bytes, i64] = {}
        """What `given_ms` found in this era, by the name of the queue and the ID of the home."""
        self._generation: i64 = -1
        self._leaving: bool = False
        self._alone: bool = state.view.size == 1

    def refresh(self) -> bool:
        """Look at the members again; returns whether the candidates changed."""
        state = self._state
        view = state.view
        self._generation = view.generation
        self._leaving = view.leaving
        alone = self._alone
        self._alone = view.size == 1
        found = [peer.id for peer in view.reachable if peer.features & kinds.FEATURE_TOKENS]
        if not view.leaving or not found:
            found.append(view.node_id)
        found.sort()
        joined = alone and not self._alone
        if found == self._candidates and not joined:
            return False
        if joined:  # what this node granted was for a cluster of one
            self._eras = [_Era(state.now_ms, [])]
        self._candidates = found
        self._eras.append(_Era(state.now_ms, found))
        self._eras = self._eras[-_KEPT:]
        self._given.clear()
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

    def given_ms(self, name: bytes, home: bytes) -> i64:
        """Since when this node gives its part of a limit to that home alone, maybe only later; `NEVER` if not."""
        key = home + name
        known = self._given.get(key, 0)
        if known == 0:
            known = self._look_back(name, home)
            if len(self._given) >= _MOST_CACHED:
                self._given.clear()
            self._given[key] = known
        return known

    def _look_back(self, name: bytes, home: bytes) -> i64:
        since_ms: i64 = NEVER
        for at in range(len(self._eras) - 1, -1, -1):
            era = self._eras[at]
            if not era.candidates or ranked(name, era.candidates)[0] != home:
                break
            since_ms = era.since_ms
        return since_ms if since_ms == NEVER or self._alone else since_ms + _WAIT_MS

    def given_for_ms(self, name: bytes, home: bytes) -> int:
        """For how long it has given it; `NOT_GIVEN` if it does not."""
        since_ms: i64 = self.given_ms(name, home)
        if since_ms == NEVER or since_ms > self._state.now_ms:
            return NOT_GIVEN
        return min(int(self._state.now_ms - since_ms), NOT_GIVEN - 1)

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
