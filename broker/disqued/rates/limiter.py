"""The limits of one queue on one node: gets tokens from the rate home of the queue while clients wait, and spends them.

The home is asked (TOKENASK) as soon as a client finds jobs and no token, and again every 250 ms while clients wait, or
after 100 ms if another number is needed. It sends tokens as they come (TOKENS). If this node is the home itself, it
takes them from the bucket. A token is valid for a second from the time of the newest question that the home answered.
Those that no client needs are given back.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.jobs.job import Job
from disqued.core.lifecycle.pausing import serve_again
from disqued.core.queues.limiter import HOME, NOTHING, Limiter
from disqued.core.queues.queue import PAUSED_OUT, Queue
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState
from disqued.rates.bucket import Bucket
from disqued.rates.buckets import Buckets
from disqued.rates.counters import DELIVERIES_HELD_BACK, LIMITED_DELIVERIES, TOKENS_RETURNED
from disqued.rates.homes import VALID_MS, Homes
from disqued.rates.payload import Ask, Told, pack_ask
from disqued.rates.share import Share

TICK_MS: Final = 100
REPEAT_MS: Final = 250
"""How often the home is told that clients still wait."""
REPORT_MS: Final = 1000
"""How often the home is told how long the jobs in flight may take."""
PAUSE_MS: Final = 5
"""The least time between two questions about one queue."""
SILENT_MS: Final = 1000
"""When a home that has not answered is named as the reason why clients wait."""


def _ends_ms(job: Job) -> i64:
    """When a job in flight is queued again or expires."""
    ends_ms: i64 = job.expire_at_s * 1000
    return min(ends_ms, job.requeue_at_ms) if job.retry_s > 0 and job.requeue_at_ms > 0 else ends_ms


class Pending:
    """The limiters that have something to do soon."""

    def __init__(self) -> None:
        self.due_ms: i64 = 0
        """When the first one has; 0 for none."""
        self._limiters: list[QueueLimiter] = []

    def add(self, limiter: QueueLimiter, at_ms: i64) -> None:
        """Have a limiter act at this time at the latest."""
        if limiter.pending_ms == 0:
            self._limiters.append(limiter)
            limiter.pending_ms = at_ms
        elif at_ms < limiter.pending_ms:
            limiter.pending_ms = at_ms
        if self.due_ms == 0 or at_ms < self.due_ms:
            self.due_ms = at_ms

    def act(self, now_ms: i64) -> None:
        """Have all those act whose time has come."""
        limiters = self._limiters
        self._limiters = []
        self.due_ms = 0
        due: list[QueueLimiter] = []
        for limiter in limiters:
            if limiter.pending_ms > now_ms:
                self._limiters.append(limiter)
                if self.due_ms == 0 or limiter.pending_ms < self.due_ms:
                    self.due_ms = limiter.pending_ms
            else:
                limiter.pending_ms = 0
                due.append(limiter)
        for limiter in due:
            limiter.act()


class QueueLimiter(Limiter):
    """The limits of one queue, woken every 100 ms while there is something to do."""

    def __init__(self, state: NodeState, homes: Homes, buckets: Buckets, pending: Pending, queue: Queue) -> None:
        super().__init__()
        self._state = state
        self._homes = homes
        self._buckets = buckets
        self._pending = pending
        self.queue = queue
        self.pending_ms: i64 = 0
        """When it acts next; 0 if nothing is known."""
        self.home = homes.home_of(queue.name)
        self.tokens: i64 = 0
        self.ended: bool = False
        self._valid_ms: i64 = 0
        """Until when the tokens are valid."""
        self._share: OwnShare | None = None
        """What the bucket knows about this node while it is the home."""
        self._drawing: bool = False
        """Tokens are taken for the delivery under way."""
        self._incarnation = b""
        """That of the home whose grants were counted."""
        self._stamp_ms: i64 = 0
        """The newest one of the home."""
        self._asked_ms: i64 = 0
        self._repeat_ms: i64 = 0
        """When to ask again."""
        self._answered: i64 = 0
        self._answered_ms: i64 = state.now_ms
        """When the home last answered, or had nothing to answer."""
        self._standing: i64 = 0
        """How many deliveries the home knows to be wanted."""
        self._returned: i64 = 0
        """How many tokens the next message gives back."""
        self._news: bool = False
        """The home does not know yet what changed."""
        self._missed: i64 = 0
        """How many clients found no token and did not wait, in the last second."""
        self._missed_ms: i64 = 0
        self._used: i64 = 0
        """Deliveries since the last tick."""
        self._recent: i64 = 0
        """Deliveries between the two ticks before."""
        self._why: i64 = NOTHING

    @property
    def own_id(self) -> bytes:
        """The ID of this node."""
        return self._state.view.node_id

    # --- deliveries ---------------------------------------------------------------------------------------------------

    def admits(self, now_ms: i64) -> bool:
        """Spend a token, after taking one from the bucket if this node is the home."""
        if not self.has_token(now_ms) and not self._draw(now_ms):
            if self.queue.waiting == 0:
                self._missed += 1
                self._missed_ms = now_ms
            self._state.counters.add(DELIVERIES_HELD_BACK)
            self._pending.add(self, now_ms)
            return False
        self.tokens -= 1
        self._used += 1
        self._state.counters.add(LIMITED_DELIVERIES)
        if self.home != self._state.view.node_id:
            self._tell_soon()
            return True
        bucket = self._own_bucket()
        if bucket is not None:
            bucket.used()
        if self.timer_next is None:
            self._state.lifecycle.timers.arm(self, now_ms + TICK_MS)
        return True

    def has_token(self, now_ms: i64) -> bool:
        """Whether a valid token is left."""
        return self.tokens > 0 and now_ms < self._valid_ms

    def _draw(self, now_ms: i64) -> bool:
        """Take tokens from the bucket, if this node is the home and has the turn."""
        bucket = self._own_bucket()
        share = self._share
        if bucket is None or share is None:
            return False
        self.tokens = 0
        share.wanted = max(self._wanted(now_ms), 1)
        self._drawing = True
        bucket.distribute()
        self._drawing = False
        return self.tokens > 0

    def lease_over(self, job: Job, *, dropped: bool) -> None:
        """A job is not in flight any more, unless this node leaves and has given it to another one."""
        leases = self.leases
        if leases is None or (dropped and self._state.view.leaving and self._state.now_ms < _ends_ms(job)):
            return
        if leases.pop(job.id, None) is not None:
            self._tell_soon()

    def _drop_given_away(self, now_ms: i64) -> None:
        """Forget the jobs that this node gave away when it began to leave, once their leases are over."""
        leases = self.leases
        table = self._state.lifecycle.table
        if leases is not None:
            for job in list(leases.values()):
                if now_ms >= _ends_ms(job) and table.get(job.id) is not job:
                    del leases[job.id]

    def forget_leases(self) -> None:
        """All jobs were dropped at once."""
        if self.leases:
            self.leases.clear()
            self._tell_soon()

    def count_leases(self, *, wanted: bool) -> None:
        """Begin or cease to count the jobs in flight. Those that are out already are not counted."""
        queues = self._state.lifecycle.queues
        if wanted and self.leases is None:
            self.leases = {}
            queues.capped += 1
        elif not wanted and self.leases is not None:
            self.leases = None
            queues.capped -= 1
        self._tell_soon()

    def holds_back(self, now_ms: i64) -> i64:
        """Why clients wait although there are jobs."""
        if self.queue.length == 0 or self.has_token(now_ms) or self._demand(now_ms) == 0:
            return NOTHING
        if self.home != self._state.view.node_id and now_ms - self._answered_ms > SILENT_MS:
            return HOME
        return self._why

    # --- what is needed -----------------------------------------------------------------------------------------------

    def _demand(self, now_ms: i64) -> i64:
        """How many clients wait, or found no token a moment ago."""
        queue = self.queue
        count = queue.waiting
        for pattern in queue.patterns or ():
            count += len(pattern.waiters)
        if count > 0:
            return count
        return self._missed if now_ms - self._missed_ms < VALID_MS else 0

    def _wanted(self, now_ms: i64) -> i64:
        """How many deliveries are possible, besides those for which there are tokens."""
        queue = self.queue
        if queue.length == 0 or queue.pause & PAUSED_OUT:
            return 0
        demand = self._demand(now_ms)
        if demand > 0 and self.leases is None:  # clients that return soon
            demand = max(demand, self._recent)
        return max(min(demand, queue.length) - self.tokens, 0)

    def _spare(self, now_ms: i64) -> i64:
        """How many tokens no client needs, or none will before they end."""
        if self.queue.length == 0 or now_ms >= self._valid_ms - 2 * TICK_MS:
            return self.tokens
        kept = self._demand(now_ms)
        if self.leases is None:
            kept = max(kept, self._recent)
        return max(self.tokens - kept, 0)

    # --- acting -------------------------------------------------------------------------------------------------------

    def ring(self, state: NodeState) -> None:
        """A tick is over."""
        self._recent = self._used
        self._used = 0
        if state.view.leaving:
            self._drop_given_away(state.now_ms)
        self.act()

    def act(self) -> None:
        """Give back what is not needed, ask for what is, and arm the alarm."""
        state = self._state
        now_ms = state.now_ms
        if self.ended:
            return
        if self.queue.waiting > 0:
            self._missed = 0
        self._give_back(now_ms)
        if self.home == state.view.node_id:
            self._act_at_home(now_ms)
        else:
            self._act_abroad(now_ms)
        busy = self._standing > 0 or self.tokens > 0 or self._used > 0 or self._recent > 0
        if busy:
            state.lifecycle.timers.arm(self, now_ms + TICK_MS)
        elif self.leases and self.home != state.view.node_id:
            state.lifecycle.timers.arm(self, now_ms + REPORT_MS)

    def _give_back(self, now_ms: i64) -> None:
        """Part with the tokens that nobody needs. The home knows about those that are not valid any more."""
        spare = self._spare(now_ms)
        if spare > 0:
            self.tokens -= spare
            self._state.counters.add(TOKENS_RETURNED, spare)
            self._news = True
            if now_ms < self._valid_ms:
                self._returned += spare

    def _own_bucket(self) -> Bucket | None:
        """The bucket, if this node is the home."""
        if self.home != self._state.view.node_id:
            return None
        bucket = self._buckets.get(self.queue.name)
        if bucket is None:
            return None
        share = self._share
        if share is None or bucket.shares.get(share.node_id) is not share:
            share = OwnShare(self)
            self._share = share
            bucket.shares[share.node_id] = share
        bucket.used_ms = self._state.now_ms
        return bucket

    def _act_at_home(self, now_ms: i64) -> None:
        bucket = self._own_bucket()
        share = self._share
        if bucket is None or share is None:
            return
        bucket.give_back(self._returned)
        self._returned = 0
        share.wanted = self._wanted(now_ms)
        self._news = False
        bucket.distribute()
        self._why = bucket.why
        self._standing = share.wanted

    def _act_abroad(self, now_ms: i64) -> None:
        wanted = self._wanted(now_ms)
        if wanted == 0 and self._standing == 0:
            self._answered_ms = now_ms
        soon = self._news or (wanted > 0 and self._standing == 0)
        if soon:
            at_ms = self._asked_ms + PAUSE_MS
        elif wanted != self._standing:
            at_ms = self._asked_ms + TICK_MS
        elif wanted > 0 or self.leases:
            at_ms = self._repeat_ms
        else:
            return
        if now_ms >= at_ms:
            self._ask(wanted, now_ms)
        elif soon:
            self._pending.add(self, at_ms)

    def _tell_soon(self) -> None:
        """Tell the home at the end of this turn what changed."""
        self._news = True
        self._pending.add(self, self._state.now_ms)

    # --- messages -----------------------------------------------------------------------------------------------------

    def _ask(self, wanted: i64, now_ms: i64) -> None:
        """Send TOKENASK."""
        peer = self._state.view.peers.get(self.home)
        if peer is None:
            return
        if self._incarnation != peer.incarnation:
            self._incarnation = peer.incarnation
            self._answered = 0
            self._returned = 0
            self._stamp_ms = 0
            self.tokens = 0
            wanted = self._wanted(now_ms)
        self._asked_ms = max(now_ms, self._asked_ms + 1)
        self._repeat_ms = now_ms + (REPEAT_MS if wanted > 0 else REPORT_MS)
        in_flight = 0 if self.leases is None else len(self.leases)
        ask = Ask(
            self.queue.name,
            int(self._asked_ms),
            int(self._answered),
            int(wanted),
            int(self.tokens),
            int(self._returned),
            in_flight,
            int(self._in_flight_ms(now_ms)),
            self._homes.given_for_ms(self.queue.name, self.home),
            int(self._stamp_ms),
        )
        send(self._state, peer, self._state.bus.other(kinds.TOKENASK, pack_ask(ask)))
        self._standing = wanted
        self._returned = 0
        self._news = False

    def _in_flight_ms(self, now_ms: i64) -> i64:
        """In how many milliseconds the last job in flight is queued again or expires."""
        last_ms: i64 = now_ms
        if self.leases is not None:
            for job in self.leases.values():
                last_ms = max(last_ms, _ends_ms(job))
        return last_ms - now_ms

    def report(self, stamp_ms: i64 = 0, incarnation: bytes = b"") -> None:
        """Tell the home at once, and give it the part of this node from the time of its stamp, if it has sent one."""
        if not self.ended and self.home != self._state.view.node_id:
            if incarnation == self._incarnation:
                self._stamp_ms = max(self._stamp_ms, stamp_ms)
            now_ms = self._state.now_ms
            self._ask(self._wanted(now_ms), now_ms)

    def told(self, told: Told, incarnation: bytes) -> None:
        """Take the answer of the home."""
        now_ms = self._state.now_ms
        if incarnation != self._incarnation:
            return
        self._answered_ms = now_ms
        self._stamp_ms = max(self._stamp_ms, told.stamp_ms)
        self._why = told.why
        if told.tokens == 0 or told.number <= self._answered:
            return
        self._answered = told.number
        self._standing = max(self._standing - told.tokens, 0)
        valid_ms: i64 = told.asked_ms + VALID_MS
        if now_ms >= valid_ms:
            self._tell_soon()
            return
        self._receive(told.tokens, valid_ms)

    def take_own(self, count: i64, why: i64) -> None:
        """Take tokens from the bucket of this node."""
        self._why = why
        if count > 0:
            self._receive(count, self._state.now_ms + VALID_MS)

    def _receive(self, count: i64, valid_ms: i64) -> None:
        """Use tokens for the clients that wait, and then give back what is left."""
        now_ms = self._state.now_ms
        if now_ms >= self._valid_ms:
            self.tokens = 0
        self.tokens += count
        self._valid_ms = max(self._valid_ms, valid_ms)
        if not self._drawing and not self.queue.pause & PAUSED_OUT:
            serve_again(self._state.lifecycle, self.queue, now_ms)
        self._tell_soon()

    # --- the home -----------------------------------------------------------------------------------------------------

    def follow_home(self) -> None:
        """The candidates changed: choose the home again. Tokens of another one are not valid any more."""
        home = self._homes.home_of(self.queue.name)
        if home == self.home:
            return
        self.home = home
        self.tokens = 0
        self._share = None
        self._incarnation = b""
        self._stamp_ms = 0
        self._standing = 0
        self._returned = 0
        self._answered = 0
        self._answered_ms = self._state.now_ms
        if self.leases or self._wanted(self._state.now_ms) > 0:
            self._tell_soon()

    def end(self) -> None:
        """The queue has no limits any more, or is removed: tell the home that nothing is in flight."""
        self.tokens = 0
        self._missed = 0
        if self.leases is not None:
            self._state.lifecycle.queues.capped -= 1
            self.leases = None
        peer = self._state.view.peers.get(self.home)
        if peer is not None and self._asked_ms > 0:
            self._ask(0, self._state.now_ms)
        if self._share is not None:
            self._share.wanted = 0
        self.ended = True
        self._state.lifecycle.timers.disarm(self)


class OwnShare(Share):
    """The tokens of the home itself."""

    def __init__(self, limiter: QueueLimiter) -> None:
        super().__init__(limiter.own_id)
        self._limiter = limiter

    def is_hungry(self, now_ms: i64) -> bool:  # noqa: ARG002 - as any share
        """Whether clients of this node wait."""
        return self.wanted > 0

    def unused(self, now_ms: i64) -> i64:  # noqa: ARG002 - as any share
        """The tokens that are left."""
        return self._limiter.tokens

    def in_flight(self, now_ms: i64) -> i64:  # noqa: ARG002 - as any share
        """The jobs that this node delivered, and those that it may deliver."""
        leases = self._limiter.leases
        return self._limiter.tokens + (0 if leases is None else len(leases))

    def give(self, count: i64, why: i64) -> None:
        """Hand the tokens over."""
        self.wanted = max(self.wanted - count, 0)
        self._limiter.take_own(count, why)
