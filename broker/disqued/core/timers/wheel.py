"""The timer wheel: wakes jobs and alarms.

Every job has a wake time, and most jobs are rearmed or removed before it comes. Arming and disarming must therefore be
cheap and leave nothing behind. Wake times fall into buckets, which are intrusive lists. Near buckets are 16 ms wide,
which bounds how late a wake-up can be. Far buckets are 4 s wide; their items move to near buckets before they are due,
a bounded number per call, so a far bucket with many jobs does not stall the node.

This is a hierarchical timing wheel with two levels (Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987).
Its slots are in a dict, because jobs live from seconds to years.
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
"""How long before its end a far bucket is opened: twice its width, so 4 s before the first of its items is due."""
MOVES_PER_CALL: Final = 2000
"""The number of items that one call moves from far to near buckets."""


def _new_bucket() -> Timed:
    """The head of an empty circular list."""
    head = Timed()
    head.timer_previous = head
    head.timer_next = head
    return head


class TimerWheel:
    """The wake times of one node.

    `phase_ms` shifts the ends of all buckets by less than the width of a near bucket. Nodes with different phases do
    not act in the same millisecond on an event that they share, for example when two holders requeue the same job.
    """

    def __init__(self, phase_ms: i64 = 0) -> None:
        self._phase_ms: i64 = phase_ms
        self._near: dict[int, Timed] = {}
        self._near_order: list[int] = []
        self._far: dict[int, Timed] = {}
        self._far_order: list[int] = []
        self._horizon_ms: i64 = 0
        """Earlier wake times are in near buckets. A multiple of the width of far buckets."""
        self._opened: list[Timed] = []
        """Far buckets whose items are moved to near buckets, the earliest last."""
        self._last_slot: i64 = -1
        self._last_bucket: Timed = _new_bucket()
        self._last_near_slot: i64 = -1
        self._last_near_bucket: Timed = _new_bucket()

    def arm(self, timed: Timed, awake_ms: i64) -> None:
        """Wake `timed` at `awake_ms`, which replaces its earlier wake time; 0 or less for never."""
        if timed.timer_next is not None:
            self.disarm(timed)
        timed.awake_ms = awake_ms
        if awake_ms <= 0:
            timed.awake_ms = 0
            return
        shifted_ms = awake_ms + self._phase_ms
        if shifted_ms < self._horizon_ms:
            near_slot: i64 = shifted_ms >> _NEAR_SHIFT
            if near_slot == self._last_near_slot:
                bucket = self._last_near_bucket
            else:
                bucket = self._bucket(self._near, self._near_order, near_slot)
                self._last_near_slot = near_slot
                self._last_near_bucket = bucket
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
        """The bucket of a slot; it is made if it does not exist."""
        bucket = buckets.get(slot)
        if bucket is None:
            bucket = _new_bucket()
            buckets[slot] = bucket
            heappush(order, slot)
        return bucket

    def disarm(self, timed: Timed) -> None:
        """Remove the wake time of `timed`."""
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
        """The number of buckets: at worst one for each armed item."""
        return len(self._near) + len(self._far)

    def next_ms(self) -> int:
        """When `due` must be called next, in unix milliseconds; 0 if nothing is armed."""
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
        """Disarm up to `limit` items whose time has come, mark them DUE, and return them in order of their wake times.

        Processing one item may arm or disarm another one, which removes its mark: the caller must not wake it then.
        Wake times within 16 ms of each other can be out of order, or within 4 s after a jump of the clock.
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
            self._last_near_slot = -1
        return ready

    def _advance(self, now_ms: i64) -> None:
        """Open the far buckets that are near, by shifted time, and move some of their items."""
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
