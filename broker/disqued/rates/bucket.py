"""The tokens of one queue at its rate home: how many there are, and which nodes get them.

The rate fills a token bucket. Each delivery takes a token, and tokens that nodes have and did not use yet still count
as in the bucket, so in every window of time all nodes together deliver at most rate * time + burst jobs. With
`inflight`, a token is also the place of one job in flight until the node that delivered it says that its lease is over.

The home grants by the parts of the limits that members give it (`parts`): by k of n parts, k/n of the rate, of the
burst and of the cap.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.queues.limiter import HOME, IN_FLIGHT, NOTHING, RATE
from disqued.core.queues.settings import QueueSettings
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState
from disqued.core.timers.alarm import Alarm
from disqued.rates.counters import TOKENS_GRANTED
from disqued.rates.homes import LEASE_MS, Homes
from disqued.rates.parts import Parts
from disqued.rates.payload import Ask, Told, pack_told
from disqued.rates.share import RemoteShare, Share

CLAIM_MS: Final = 100
"""How often members are asked for their parts at most, while clients wait."""
KEPT_MS: Final = 60_000
"""How long a full bucket is kept that nobody uses."""
_LOST_MS: Final = 500
"""How often a home that waits for the jobs of a lost node looks whether they have ended."""
_LONGEST_WAIT_MS: Final = 60_000
_MANY: Final = 1 << 40
_DEFAULT_LEASE_MS: Final = 300_000
"""The default RETRY."""


class Bucket(Alarm):
    """The tokens of one queue, woken when there may be new ones for nodes that wait."""

    def __init__(self, state: NodeState, homes: Homes, name: bytes, settings: QueueSettings) -> None:
        super().__init__()
        self._state = state
        self._homes = homes
        self.name = name
        self.shares: dict[bytes, Share] = {}
        """By node ID; the node that is served next comes first."""
        self.used_ms: i64 = state.now_ms
        """When a node last asked for tokens."""
        self.ended: bool = False
        """Another node is the home now, or the queue has no limits any more."""
        self._claimed_ms: i64 = 0
        self.parts = Parts(state, homes, name)
        self._unused: i64 = 0
        """How many tokens nodes had when the bucket was last filled. Those that were used since count until then."""
        self._refill(settings)

    # --- what nodes say -----------------------------------------------------------------------------------------------

    def hear(self, peer: Peer, ask: Ask) -> None:
        """Take what another node says, and answer if it wants tokens."""
        settings = self._state.lifecycle.queues.settings_of(self.name)
        if settings is not None:
            self.parts.hear(peer, ask, settings)
        share = self.shares.get(peer.id)
        if share is None or not isinstance(share, RemoteShare) or share.incarnation != peer.incarnation:
            if isinstance(share, RemoteShare):
                self._lose(share)
                self.shares[peer.id + share.incarnation] = share  # what its earlier process delivered
            share = RemoteShare(self._state, peer, self.name)
            self.shares[peer.id] = share
        returned = share.hear(ask)
        if returned < 0:
            return
        self.give_back(returned)
        wanted = share.wanted
        self.used_ms = self._state.now_ms
        self.distribute()
        if wanted > 0 and share.wanted == wanted:
            share.give(0, self.why)

    def give_back(self, count: i64) -> None:
        """Take tokens back that a node did not use."""
        self.parts.level += float(count)
        self._unused -= count

    def used(self) -> None:
        """This node used a token: there is room for another one from now on."""
        settings = self._state.lifecycle.queues.settings_of(self.name)
        if settings is not None:
            self._refill(settings)

    def _lose(self, share: RemoteShare) -> None:
        settings = self._state.lifecycle.queues.settings_of(self.name)
        retry_s: i64 = -1 if settings is None else settings.retry_s
        share.lose(retry_s * 1000 if retry_s > 0 else _DEFAULT_LEASE_MS)

    # --- granting -----------------------------------------------------------------------------------------------------

    def ring(self, state: NodeState) -> None:  # noqa: ARG002 - it knows its node
        """Grant what has come meanwhile."""
        self.distribute()

    def distribute(self) -> None:
        """Give the nodes that wait the tokens that there are, one in turn, and arm the alarm for the next ones."""
        state = self._state
        settings = state.lifecycle.queues.settings_of(self.name)
        if self.ended or settings is None or not settings.limited:
            return
        now_ms = state.now_ms
        self._refill(settings)
        hungry = [share for share in self.shares.values() if share.is_hungry(now_ms)]
        if hungry:
            self._claim()
        free = self._free(settings)
        if hungry and free > 0:
            self._give(hungry, free)
            hungry = [share for share in hungry if share.wanted > 0]
        if hungry:
            self._wait(settings)

    def _give(self, hungry: list[Share], free: i64) -> None:
        """Divide the tokens: those that are served go to the end of the line."""
        left = free
        waiting = hungry
        while waiting and left > 0:
            part: i64 = max(left // len(waiting), 1)
            still: list[Share] = []
            for share in waiting:
                count: i64 = min(part, share.wanted - share.giving, left)
                share.giving += count
                left -= count
                if share.giving < share.wanted:
                    still.append(share)
            waiting = still
        self.parts.level -= float(free - left)
        self._unused += free - left
        self._state.counters.add(TOKENS_GRANTED, free - left)
        why = self.why
        for share in hungry:
            count = share.giving
            if count > 0:
                share.giving = 0
                del self.shares[share.node_id]
                self.shares[share.node_id] = share
                share.give(count, why)

    def _wait(self, settings: QueueSettings) -> None:
        """Arm the alarm: nodes wait."""
        wait_ms: i64 = _LONGEST_WAIT_MS
        if self._state.view.size > 1:
            wait_ms = CLAIM_MS if self.parts.missing() else LEASE_MS // 4
        elif settings.in_flight > 0:
            wait_ms = _LOST_MS
        if settings.rate_per_s > 0 and self.parts.count > 0 and self.parts.tokens(settings) == 0:
            wait_ms = min(wait_ms, self.parts.next_ms(settings))
        self._state.lifecycle.timers.arm(self, self._state.now_ms + wait_ms)

    @property
    def why(self) -> i64:
        """What keeps the next token back."""
        settings = self._state.lifecycle.queues.settings_of(self.name)
        if settings is None:
            return NOTHING
        if self.parts.count == 0:
            return HOME
        return RATE if settings.rate_per_s > 0 and self.parts.tokens(settings) == 0 else IN_FLIGHT

    # --- how many there are -------------------------------------------------------------------------------------------

    def _refill(self, settings: QueueSettings) -> None:
        """Add what the rate gave since the last time."""
        now_ms = self._state.now_ms
        self._look_for_lost()
        self.parts.refill(settings, self._unused)
        self._unused = 0
        for share in self.shares.values():
            self._unused += share.unused(now_ms)

    def _free(self, settings: QueueSettings) -> i64:
        """How many tokens can be given now."""
        if self.parts.count == 0:
            return 0
        free: i64 = self.parts.tokens(settings) if settings.rate_per_s > 0 else _MANY
        if settings.in_flight > 0:
            now_ms = self._state.now_ms
            live: i64 = 0
            lost: i64 = 0
            for share in self.shares.values():
                if share.lost:
                    lost += share.in_flight(now_ms)
                else:
                    live += share.in_flight(now_ms)
            free = min(free, self._cap(settings.in_flight) - live, settings.in_flight - live - lost)
        return max(free, 0)

    def _cap(self, in_flight: i64) -> i64:
        """How much of a cap the parts are that this node has; a majority gets what is left over."""
        size = self._state.view.size
        count: i64 = min(self.parts.count, size)
        whole: i64 = in_flight * count
        if 2 * count > size:
            return (whole + size - 1) // size
        return whole // size

    def _look_for_lost(self) -> None:
        """Note which nodes cannot be seen any more, and forget those whose jobs are not in flight any more."""
        now_ms = self._state.now_ms
        seen = [peer.id for peer in self._homes.seen()]
        over: list[bytes] = []
        for key, share in self.shares.items():
            if not isinstance(share, RemoteShare):
                continue
            if not share.lost and share.node_id not in seen:
                self._lose(share)
            if share.lost and share.in_flight(now_ms) == 0:
                over.append(key)
        for key in over:
            del self.shares[key]

    def _claim(self) -> None:
        """Ask the members for their parts that have not given them, or not for long enough."""
        state = self._state
        if state.now_ms - self._claimed_ms < CLAIM_MS:
            return
        missing = self.parts.missing()
        if not missing:
            return
        self._claimed_ms = state.now_ms
        told = pack_told(Told(self.name, 0, int(state.now_ms), 0, 0, NOTHING, report=True))
        for peer in missing:
            send(state, peer, state.bus.other(kinds.TOKENS, told))

    @property
    def is_idle(self) -> bool:
        """Whether a new bucket would be the same: it is full, unused, and no job is in flight."""
        now_ms = self._state.now_ms
        quiet_ms: i64 = now_ms - self.used_ms
        if quiet_ms < KEPT_MS:
            return False
        settings = self._state.lifecycle.queues.settings_of(self.name)
        if settings is None or not settings.limited:
            return True
        for share in self.shares.values():
            if share.in_flight(now_ms) > 0 or share.wanted > 0:
                return False
        return settings.rate_per_s <= 0 or settings.rate_per_s * float(quiet_ms - KEPT_MS // 2) >= 1000.0 * (
            settings.capacity + 1.0
        )
