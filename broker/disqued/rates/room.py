"""The rates room of one node: the limiters of its queues, and the buckets of the queues whose rate home it is."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.queues.queue import Queue
from disqued.core.runtime.outbox import send
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.rates.buckets import BUCKET_BYTES, Buckets
from disqued.rates.homes import Homes
from disqued.rates.limiter import Pending, QueueLimiter
from disqued.rates.payload import Ask, Told, pack_ask

NAME: Final = "rates"
_VISIT_MS: Final = 10_000
"""How often buckets that nobody needs are looked for."""


class RatesRoom(Room):
    """Limits the deliveries of one node together with the other nodes."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.homes = Homes(state)
        self.buckets = Buckets(state, self.homes)
        self.limiters: dict[bytes, QueueLimiter] = {}
        """By the name of the queue."""
        self._pending = Pending()
        self._visit_ms: i64 = 0

    # --- events -------------------------------------------------------------------------------------------------------

    def queue_limits(self, queue: Queue) -> None:
        """Give a queue its limiter, or take it away."""
        settings = queue.settings
        limiter = self.limiters.get(queue.name)
        if settings is None or not settings.limited:
            queue.limiter = None
            if limiter is not None:
                del self.limiters[queue.name]
                limiter.end()
            return
        if limiter is None or limiter.queue is not queue:
            if limiter is not None:
                limiter.end()
            self._follow_homes()
            limiter = QueueLimiter(self.state, self.homes, self.buckets, self._pending, queue)
            self.limiters[queue.name] = limiter
            queue.limiter = limiter
        limiter.count_leases(wanted=settings.in_flight > 0)

    def queue_gone(self, queue: Queue) -> None:
        """Forget a queue."""
        limiter = self.limiters.get(queue.name)
        if limiter is not None and limiter.queue is queue:
            del self.limiters[queue.name]
            limiter.end()

    def all_dropped(self) -> None:
        """Forget all queues."""
        for limiter in list(self.limiters.values()):
            limiter.forget_leases()
            limiter.end()
        self.limiters.clear()

    def deadline_ms(self) -> i64:
        """When a limiter has something to do."""
        return self._pending.due_ms

    def due(self) -> None:
        """Let the limiters act."""
        state = self.state
        if state.loading or state.ending or self._pending.due_ms == 0 or self._pending.due_ms > state.now_ms:
            return
        self._follow_homes()
        self._pending.act(state.now_ms)

    def cron(self) -> None:
        """Follow changes of the members, and end buckets that nobody needs."""
        self._follow_homes(every_time=True)
        if len(self.buckets) > 0 and self.state.now_ms >= self._visit_ms:
            self._visit_ms = self.state.now_ms + _VISIT_MS
            self.buckets.visit()

    def leaving_changed(self) -> None:
        """This node cannot be a home while it leaves."""
        self._follow_homes()

    def peer_up(self, peer: Peer) -> None:
        """Tell a home again what it may have missed."""
        for limiter in self.limiters.values():
            if limiter.home == peer.id:
                limiter.report()

    def buffered_bytes(self) -> i64:
        """The memory of the buckets."""
        return len(self.buckets) * BUCKET_BYTES

    def _follow_homes(self, *, every_time: bool = False) -> None:
        """Choose the homes again if the members may have changed."""
        if not (every_time or self.homes.outdated) or not self.homes.refresh():
            return
        self.buckets.follow_homes()
        for limiter in self.limiters.values():
            limiter.follow_home()

    # --- messages -----------------------------------------------------------------------------------------------------

    def asked(self, sender: Peer, ask: Ask) -> None:
        """Another node needs tokens of a queue, or reports what it did with them."""
        self._follow_homes()
        bucket = self.buckets.get(ask.queue)
        if bucket is not None:
            bucket.hear(sender, ask)

    def told(self, sender: Peer, told: Told) -> None:
        """Another node grants tokens, or asks whether it is the home."""
        self._follow_homes()
        if self.homes.home_of(told.queue) != sender.id:
            return
        limiter = self.limiters.get(told.queue)
        if told.report and limiter is not None:
            limiter.report(told.stamp_ms, sender.incarnation)
        elif told.report:
            given_ms = self.homes.given_for_ms(told.queue, sender.id)
            ask = Ask(told.queue, int(self.state.now_ms), 0, 0, 0, 0, 0, 0, given_ms, told.stamp_ms)
            send(self.state, sender, self.state.bus.other(kinds.TOKENASK, pack_ask(ask)))
        elif limiter is not None:
            limiter.told(told, sender.incarnation)


def rates_of(state: NodeState) -> RatesRoom:
    """The rates room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, RatesRoom)
    return room
