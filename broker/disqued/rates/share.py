"""What the rate home of a queue knows about the tokens of one node."""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState
from disqued.rates.homes import VALID_MS
from disqued.rates.payload import Ask, Told, pack_told


class Share:
    """The tokens of one node."""

    def __init__(self, node_id: bytes) -> None:
        self.node_id = node_id
        self.wanted: i64 = 0
        """How many more deliveries the node could make."""
        self.giving: i64 = 0
        """How many it gets in the present distribution."""
        self.lost: bool = False
        """Whether the node cannot be seen any more."""

    def is_hungry(self, now_ms: i64) -> bool:
        """Whether the node waits for tokens."""
        raise NotImplementedError

    def unused(self, now_ms: i64) -> i64:
        """How many tokens the node may still have."""
        raise NotImplementedError

    def in_flight(self, now_ms: i64) -> i64:
        """How many jobs are in flight that the node delivered, or may deliver with the tokens that it has."""
        raise NotImplementedError

    def give(self, count: i64, why: i64) -> None:
        """Give the node tokens, maybe none; `why` there are not more."""
        raise NotImplementedError


@mypyc_attr(acyclic=True)
class Grant:
    """Tokens that were sent, and that the node has not counted yet, as far as the home knows."""

    def __init__(self, number: i64, count: i64, asked_ms: i64, until_ms: i64) -> None:
        self.number: i64 = number
        self.count: i64 = count
        self.asked_ms: i64 = asked_ms
        """The time in the TOKENASK, on the clock of the node."""
        self.until_ms: i64 = until_ms
        """When they are certainly not valid any more, on the clock of the home."""


class RemoteShare(Share):
    """The tokens of another node. All that it says is absolute, so messages may be lost or late."""

    def __init__(self, state: NodeState, peer: Peer, name: bytes) -> None:
        super().__init__(peer.id)
        self._state = state
        self._name = name
        self.incarnation = peer.incarnation
        self._asked_ms: i64 = 0
        self._heard_ms: i64 = 0
        self._has: i64 = 0
        self._leases: i64 = 0
        self._leases_until_ms: i64 = 0
        self._longest_ms: i64 = 0
        """The longest time to the end of its leases that it ever said."""
        self._grants: list[Grant] = []
        self._number: i64 = 0

    def hear(self, ask: Ask) -> i64:
        """Take what the node says; returns how many tokens it gives back, or -1 for an outdated message."""
        if ask.asked_ms <= self._asked_ms:
            return -1
        now_ms = self._state.now_ms
        returned: i64 = min(ask.returned, self.unused(now_ms))
        self._asked_ms = ask.asked_ms
        self._heard_ms = now_ms
        self.lost = False
        self.wanted = ask.wanted
        self._has = ask.unused
        self._leases = ask.in_flight
        self._leases_until_ms = now_ms + ask.in_flight_ms
        self._longest_ms = max(self._longest_ms, ask.in_flight_ms)
        self._grants = [  # what has not arrived within its time is not used any more
            grant
            for grant in self._grants
            if grant.number > ask.answered and self._asked_ms < grant.asked_ms + VALID_MS
        ]
        return returned

    def is_hungry(self, now_ms: i64) -> bool:
        """Whether the node waits: it repeats that while it does."""
        return self.wanted > 0 and not self.lost and now_ms - self._heard_ms < VALID_MS

    def unused(self, now_ms: i64) -> i64:
        """What the node said that it has, and what was sent since."""
        count: i64 = self._has if now_ms - self._heard_ms < VALID_MS else 0
        for grant in self._grants:
            if grant.until_ms > now_ms:
                count += grant.count
        return count

    def in_flight(self, now_ms: i64) -> i64:
        """Without a time limit while the node can be seen: it has told what it delivered when it answers again."""
        if self.lost and now_ms >= self._leases_until_ms:
            return 0
        count: i64 = self._leases + self._has
        for grant in self._grants:
            count += grant.count
        return count

    def give(self, count: i64, why: i64) -> None:
        """Send TOKENS."""
        peer = self._state.view.peers.get(self.node_id)
        if peer is None:
            return
        if count > 0:
            self.wanted = max(self.wanted - count, 0)
            self._number += 1
            until_ms: i64 = self._heard_ms + VALID_MS
            self._grants.append(Grant(self._number, count, self._asked_ms, until_ms))
        told = Told(
            self._name,
            int(self._asked_ms),
            int(self._state.now_ms),
            int(self._number),
            int(count),
            int(why),
            report=False,
        )
        send(self._state, peer, self._state.bus.other(kinds.TOKENS, pack_told(told)))

    def lose(self, lease_ms: i64) -> None:
        """The node cannot be seen any more. What it was sent last may be in flight as long as its other jobs.

        `lease_ms`: how long that is if it had none.
        """
        self.lost = True
        self.wanted = 0
        if self._grants or self._has > 0:
            longest_ms: i64 = self._longest_ms if self._longest_ms > 0 else lease_ms
            self._leases_until_ms = max(self._leases_until_ms, self._state.now_ms + longest_ms)
