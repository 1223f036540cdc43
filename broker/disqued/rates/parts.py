"""The parts of a limit that the members give to a rate home, and how many tokens the home has by them.

Each of n members has 1/n of the rate, of the burst and of the cap of a queue, and gives it to one home at a time, for
`LEASE_MS` from a time that the home said. Before it gives it to another one, it waits until the last lease and the
tokens that were granted under it are over (`homes`). So two homes never grant by the same part, however different their
views are. A part that comes from another home comes empty; one that only was not renewed, because nobody waited for
jobs, comes with what it had and what the rate gave meanwhile.

Members that know no tokens cannot give. Their parts go with those of more than half of the others.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.queues.settings import QueueSettings
from disqued.core.runtime.state import NodeState
from disqued.rates.homes import LEASE_MS, NEVER, Homes
from disqued.rates.payload import NOT_GIVEN, Ask

EPSILON: Final = 1e-9


@mypyc_attr(acyclic=True)
class Part:
    """The part of one member."""

    def __init__(self, filled_ms: i64, level: float) -> None:
        self.until_ms: i64 = 0
        """When the lease ends."""
        self.filled_ms: i64 = filled_ms
        """Until when the rate has filled it; later than now if it may not be filled yet."""
        self.level: float = level
        """How many tokens it has, if it is not among those that were counted last."""
        self.counted: bool = False


class Parts:
    """The parts that one home has, by the ID of the member."""

    def __init__(self, state: NodeState, homes: Homes, name: bytes) -> None:
        self._state = state
        self._homes = homes
        self._name = name
        self._known: dict[bytes, Part] = {}
        self._since_ms: i64 = max(homes.given_ms(name, state.view.node_id), 0)
        """Since when this node can have granted nothing, before this bucket began."""
        self.count: i64 = 0
        """How many parts there are now."""
        self.level: float = 0.0
        """How many tokens they have together. Negative after a whole one was granted by a full bucket of less."""

    def hear(self, peer: Peer, ask: Ask, settings: QueueSettings) -> None:
        """Take the part that a member gives."""
        state = self._state
        if ask.given_ms == NOT_GIVEN or not state.started_ms <= ask.stamp_ms <= state.now_ms:
            return
        self.take(peer.id, ask.stamp_ms + LEASE_MS, state.now_ms - ask.given_ms, settings)

    def take(self, node_id: bytes, until_ms: i64, since_ms: i64, settings: QueueSettings) -> None:
        """Take a part until then, which no other home has had since."""
        part = self._known.get(node_id)
        if part is None:
            begins_ms: i64 = max(since_ms, self._since_ms)
            part = Part(begins_ms, 0.0)
            if begins_ms <= settings.limited_ms:  # no node has granted anything so far
                part = Part(self._state.now_ms, settings.capacity / float(self._state.view.size))
            self._known[node_id] = part
        elif since_ms > part.filled_ms:
            self._uncount(part)
            part.level = 0.0
            part.filled_ms = since_ms
        part.until_ms = max(part.until_ms, until_ms)

    def _uncount(self, part: Part) -> None:
        if part.counted:
            part.counted = False
            self.level -= self.level / float(self.count)
            self.count -= 1

    def refill(self, settings: QueueSettings, unused: i64) -> None:
        """Count the parts, and add what the rate gave. `unused`: tokens of nodes, which count as in the bucket."""
        state = self._state
        now_ms = state.now_ms
        size: i64 = state.view.size
        own_ms: i64 = self._homes.given_ms(self._name, state.view.node_id)
        if own_ms != NEVER and own_ms <= now_ms:
            self.take(state.view.node_id, now_ms + LEASE_MS, own_ms, settings)
        self._take_silent(settings)
        each = self.level / float(self.count) if self.count > 0 else 0.0
        per_ms = settings.rate_per_s / 1000.0 / float(size)
        self.count = 0
        self.level = 0.0
        most = settings.capacity / float(size)
        for node_id, part in self._known.items():
            if part.counted:
                part.level = each
            is_member = node_id == state.view.node_id or node_id in state.view.peers
            part.counted = is_member and now_ms < part.until_ms
            if part.counted:
                passed_ms: i64 = now_ms - part.filled_ms
                if passed_ms > 0:
                    part.level += per_ms * float(passed_ms)
                    part.filled_ms = now_ms
                part.level = min(part.level, most)
                self.level += part.level
                self.count += 1
        self.level = min(self.level, self.capacity(settings) - float(unused))

    def _take_silent(self, settings: QueueSettings) -> None:
        """Take the parts of members that know no tokens, or leave them."""
        state = self._state
        now_ms = state.now_ms
        silent: list[Peer] = []
        speaking: i64 = 1
        given: i64 = 0
        for peer in state.view.peers.values():
            if peer.in_handshake:
                continue
            if peer.features & kinds.FEATURE_TOKENS:
                speaking += 1
                given += self._lasts(peer.id, 0)
            else:
                silent.append(peer)
        given += self._lasts(state.view.node_id, 0)
        for peer in silent:
            if 2 * given > speaking and self._homes.sees(peer):
                part = self._known.get(peer.id)
                self.take(peer.id, now_ms + 1, now_ms if part is None else part.filled_ms, settings)
            else:
                part = self._known.pop(peer.id, None)
                if part is not None:
                    self._uncount(part)

    def _lasts(self, node_id: bytes, more_ms: i64) -> i64:
        """1 if a part is there for longer than that, otherwise 0."""
        part = self._known.get(node_id)
        return 1 if part is not None and part.until_ms > self._state.now_ms + more_ms else 0

    def missing(self) -> list[Peer]:
        """The members that answer and whose parts are not there, or are soon not there any more."""
        return [
            peer
            for peer in self._homes.seen()
            if peer.features & kinds.FEATURE_TOKENS and self._lasts(peer.id, LEASE_MS // 2) == 0
        ]

    @property
    def fraction(self) -> float:
        """What part of the limits this home has."""
        return min(float(self.count) / float(self._state.view.size), 1.0)

    def capacity(self, settings: QueueSettings) -> float:
        """How many tokens fit into the bucket."""
        return settings.capacity * self.fraction

    def tokens(self, settings: QueueSettings) -> i64:
        """How many can be granted: a full bucket has one, even if less than one fits into it."""
        if self.level >= 1.0 - EPSILON:
            return i64(self.level + EPSILON)
        return 1 if self.count > 0 and self.level >= self.capacity(settings) - EPSILON else 0

    def next_ms(self, settings: QueueSettings) -> i64:
        """In how many milliseconds the rate gives another token."""
        needed = min(self.capacity(settings), 1.0) - self.level
        return i64(max(needed, 0.0) * 1000.0 / (settings.rate_per_s * self.fraction)) + 1
