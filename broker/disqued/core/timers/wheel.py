"""The timer wheel: when each job and each alarm is woken.

Every job has a wake time and most are moved or removed before it comes, so arming and disarming must cost next to
nothing and leave nothing behind. Wake times fall into buckets that link their members intrusively: near buckets of
16 ms, which bounds how late a wake-up can be, and far buckets of 4 s, whose members move to near buckets well before
they are due, a bounded number per call, so that no far bucket stalls the node however many jobs share it.

This is a timing wheel of two levels (Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987) with the
slots in a dict, because jobs live from seconds to years.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from mypy_extensions import i64

from disqued.core.timers.timed import DUE, Timed

_NEAR_SHIFT: Final = 4
NEAR_MS: Final = 1 << _NEAR_SHIFT
_FAR_SHIFT: Final = 12
_LEAD_MS: Final = 8192
"""How long before its end a far bucket is opened: twice its width, so 4 s before the first of its members is due."""
MOVES_PER_CALL: Final = 2000
"""Members that one call moves from a far bucket to near ones."""


def _new_bucket() -> Timed:
    """The head of an empty circular list."""
    head = Timed()
    head.timer_previous = head
    head.timer_next = head
    return head


class TimerWheel:
    """Wake times of any number of things.

    `phase_ms` shifts the ends of all buckets, by less than their width: nodes with different phases do not act in the
    same millisecond on what came to both at once, for example the requeueing of a job of which both have a copy.
    """

    def __init__(self, phase_ms: i64 = 0) -> None:
        self._phase_ms: i64 = phase_ms
        self._near: dict[int, Timed] = {}
        self._near_order: list[int] = []
        self._far: dict[int, Timed] = {}
        self._far_order: list[int] = []
        self._horizon_ms: i64 = 0
        """Wake times before it are in near buckets, a multiple of the far width."""
        self._opened: list[Timed] = []
        """Far buckets being moved to near ones, the earliest last."""
        self._last_slot: i64 = -1
        self._last_bucket: Timed = _new_bucket()

    def arm(self, timed: Timed, awake_ms: i64) -> None:
        """Wake `timed` at `awake_ms` instead of what was set before; 0 or less for never."""
        if timed.timer_next is not None:
            self.disarm(timed)
        timed.awake_ms = awake_ms
        if awake_ms <= 0:
            timed.awake_ms = 0
            return
        shifted_ms = awake_ms + self._phase_ms
        if shifted_ms < self._horizon_ms:
            bucket = self._bucket(self._near, self._near_order, shifted_ms >> _NEAR_SHIFT)
        else:
            slot: i64 = shifted_ms >> _FAR_SHIFT
            if slot == self._last_slot:
                bucket = self._last_bucket
            else:
                bucket = self._bucket(self._far, self._far_order, slot)
                self._last_slot = slot
                self._last_bucket = bucket
        last = bucket.timer_previous
        assert last is not None
        last.timer_next = timed
        timed.timer_previous = last
        timed.timer_next = bucket
        bucket.timer_previous = timed

    def _bucket(self, buckets: dict[int, Timed], order: list[int], slot: i64) -> Timed:
        """The bucket of a slot, made when missing."""
        bucket = buckets.get(slot)
        if bucket is None:
            bucket = _new_bucket()
            buckets[slot] = bucket
            heappush(order, slot)
        return bucket

    def disarm(self, timed: Timed) -> None:
        """Wake `timed` no more."""
        following = timed.timer_next
        previous = timed.timer_previous
        if following is None or previous is None:
            timed.awake_ms = 0
            return
        previous.timer_next = following
        following.timer_previous = previous
        timed.timer_next = None
        timed.timer_previous = None
        timed.awake_ms = 0

    @property
    def buckets(self) -> int:
        """How many buckets there are: at worst one for each thing that is armed."""
        return len(self._near) + len(self._far)

    def next_ms(self) -> int:
        """When `due` should be called next; 0 when nothing is armed."""
        if self._opened:
            return 1
        earliest = 0
        if self._near_order:
            earliest = (self._near_order[0] + 1) << _NEAR_SHIFT
        if self._far_order:
            opening = ((self._far_order[0] + 1) << _FAR_SHIFT) - _LEAD_MS
            if earliest == 0 or opening < earliest:
                earliest = max(opening, 1)
        return earliest if earliest <= 1 else earliest - self._phase_ms

    def due(self, now_ms: i64, limit: i64) -> list[Timed]:
        """Disarm and return up to `limit` whose time has come, in order of their wake times, marked as DUE.

        What is done for one may disarm or arm another one of them, which takes its mark away: it is not to be woken.
        The order holds within 16 ms, and within 4 s after a jump of the clock.
        """
        now_ms += self._phase_ms
        self._advance(now_ms)
        ready: list[Timed] = []
        room = limit
        while self._near_order:
            slot: i64 = self._near_order[0]
            if (slot + 1) << _NEAR_SHIFT > now_ms:
                break
            bucket = self._near[slot]
            while room > 0:
                first = bucket.timer_next
                assert first is not None
                if first is bucket:
                    break
                self.disarm(first)
                first.awake_ms = DUE
                ready.append(first)
                room -= 1
            if bucket.timer_next is not bucket:
                break
            heappop(self._near_order)
            del self._near[slot]
            bucket.timer_next = None
            bucket.timer_previous = None
        return ready

    def _advance(self, now_ms: i64) -> None:
        """Open the far buckets that come near, by shifted time, and move some of their members."""
        horizon: i64 = ((now_ms + _LEAD_MS) >> _FAR_SHIFT) << _FAR_SHIFT
        if horizon > self._horizon_ms:
            self._horizon_ms = horizon
            opened: list[Timed] = []
            while self._far_order and self._far_order[0] << _FAR_SHIFT < horizon:
                opened.append(self._far.pop(heappop(self._far_order)))
            opened.reverse()
            self._opened = opened + self._opened
            self._last_slot = -1
        moves = MOVES_PER_CALL
        while self._opened and moves > 0:
            bucket = self._opened[-1]
            while moves > 0:
                first = bucket.timer_next
                assert first is not None
                if first is bucket:
                    bucket.timer_next = None
                    bucket.timer_previous = None
                    self._opened.pop()
                    break
                self.arm(first, first.awake_ms)
                moves -= 1
