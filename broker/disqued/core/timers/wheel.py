"""The timer wheel: wakes jobs and alarms.

Every job has a wake time, and most jobs are rearmed or removed before it comes. Arming and disarming must therefore be
cheap and leave nothing behind. Wake times fall into buckets, which are intrusive lists. Near buckets are 16 ms wide,
which bounds how late a wake-up can be. Far buckets are 4 s wide; their items move to near buckets before they are due,
a bounded number per call, so a far bucket with many jobs does not stall the node. Later wake times are in wider
buckets: each level of far buckets is 256 times as wide as the one below it, and its items move down in the same way.

This is a hierarchical timing wheel (Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987). The number of
buckets is bounded, so a bucket that becomes empty may stay until its time: clients that arm and disarm at arbitrary
times do not make the wheel grow.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from mypy_extensions import i64

from disqued.core.timers.timed import DUE, Timed

_NEAR_SHIFT: Final = 4
NEAR_MS: Final = 1 << _NEAR_SHIFT
_FAR_SHIFT: Final = 12
_LEVELS: Final = 4
_LEVEL_SHIFT: Final = 8
"""Far buckets are 4 s, 17 minutes, 3 days and 2 years wide."""
_SLOTS: Final = 512
"""Buckets per level: twice as many as fit into one bucket of the level above, so that a bucket can be opened early."""
_LEAD_MS: Final = 8192
"""How long before its end a far bucket is opened: twice its width, so 4 s before the first of its items is due."""
MOVES_PER_CALL: Final = 2000
"""The number of items that one call moves to narrower buckets."""
_NEVER_MS: Final = 1 << 62


def _new_bucket(begins_ms: i64) -> Timed:
    """The head of an empty circular list. Its wake time is the time at which the bucket begins."""
    head = Timed()
    head.awake_ms = begins_ms
    head.timer_previous = head
    head.timer_next = head
    return head


def _begin(bucket: Timed) -> int:
    """When a bucket begins."""
    return bucket.awake_ms


class TimerWheel:
    """The wake times of one node.

    `phase_ms` shifts the ends of all buckets by less than the width of a near bucket. Nodes with different phases do
    not act in the same millisecond on an event that they share, for example when two holders requeue the same job.
    """

    def __init__(self, phase_ms: i64 = 0) -> None:
        self._phase_ms: i64 = phase_ms
        self._near: dict[int, Timed] = {}
        self._near_order: list[int] = []
        self._far: list[list[Timed | None]] = [[None] * _SLOTS for _ in range(_LEVELS)]
        """By level and number of the slot modulo `_SLOTS`."""
        self._horizon_ms: i64 = 0
        """Earlier wake times are in near buckets. A multiple of the width of the narrowest far buckets."""
        self._opens_ms: i64 = _NEVER_MS
        """A far bucket is opened when the horizon exceeds this."""
        self._opened: list[Timed] = []
        """Far buckets whose items are moved to narrower buckets, the earliest last."""
        self._last_slot: i64 = -1
        self._last_bucket: Timed = _new_bucket(0)
        self._last_near_slot: i64 = -1
        self._last_near_bucket: Timed = _new_bucket(0)

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
                bucket = self._near_bucket(near_slot)
                self._last_near_slot = near_slot
                self._last_near_bucket = bucket
        else:
            slot: i64 = shifted_ms >> _FAR_SHIFT
            if slot == self._last_slot:
                bucket = self._last_bucket
            else:
                bucket = self._far_bucket(shifted_ms)
                self._last_slot = slot
                self._last_bucket = bucket
        last = bucket.timer_previous
        assert last is not None
        last.timer_next = timed
        timed.timer_previous = last
        timed.timer_next = bucket
        bucket.timer_previous = timed

    def _near_bucket(self, slot: i64) -> Timed:
        """The near bucket of a slot; it is made if it does not exist."""
        bucket = self._near.get(slot)
        if bucket is None:
            bucket = _new_bucket(slot << _NEAR_SHIFT)
            self._near[slot] = bucket
            heappush(self._near_order, slot)
        return bucket

    def _far_bucket(self, shifted_ms: i64) -> Timed:
        """The far bucket of a time, of the lowest level that reaches so far; it is made if it does not exist.

        It was not opened yet: a bucket of a higher level is opened half its width before it begins, and the level below
        reaches at least one and a half times that width.
        """
        level: i64 = 0
        shift: i64 = _FAR_SHIFT
        last: i64 = (self._horizon_ms >> shift) + _SLOTS - 1
        while shifted_ms >> shift > last and level < _LEVELS - 1:
            level += 1
            shift += _LEVEL_SHIFT
            last = (self._horizon_ms >> shift) + _SLOTS - 1
        slot: i64 = min(shifted_ms >> shift, last)
        buckets = self._far[level]
        bucket = buckets[slot & (_SLOTS - 1)]
        if bucket is None:
            bucket = _new_bucket(slot << shift)
            buckets[slot & (_SLOTS - 1)] = bucket
            self._opens_ms = min(self._opens_ms, bucket.awake_ms - self._early_ms(level))
        return bucket

    def _early_ms(self, level: i64) -> i64:
        """How long before its beginning the horizon opens a bucket of a level."""
        return 0 if level == 0 else 1 << (_FAR_SHIFT + level * _LEVEL_SHIFT - 1)

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

    def next_ms(self) -> int:
        """When `due` must be called next, in unix milliseconds; 0 if nothing is armed."""
        if self._opened:
            return 1
        earliest: i64 = _NEVER_MS
        if self._near_order:
            slot: i64 = self._near_order[0]
            earliest = (slot + 1) << _NEAR_SHIFT
        if self._opens_ms < _NEVER_MS:
            earliest = min(earliest, self._opens_ms + (1 << _FAR_SHIFT) - _LEAD_MS)
        if earliest == _NEVER_MS:
            return 0
        return max(earliest - self._phase_ms, 1)

    def due(self, now_ms: i64, limit: i64) -> list[Timed]:
        """Disarm up to `limit` items whose time has come, mark them DUE, and return them in order of their wake times.

        Processing one item may arm or disarm another one, which removes its mark: the caller must not wake it then.
        Wake times within 16 ms of each other can be out of order.
        """
        now_ms += self._phase_ms
        self._advance(now_ms)
        if self._opened:  # after a jump of the clock there may be earlier items in a bucket that is not sorted yet
            now_ms = min(now_ms, self._opened[-1].awake_ms)
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
        self._horizon_ms = max(self._horizon_ms, ((now_ms + _LEAD_MS) >> _FAR_SHIFT) << _FAR_SHIFT)
        if self._horizon_ms > self._opens_ms:
            self._open()
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

    def _open(self) -> None:
        """Open the far buckets that the horizon has reached."""
        self._opens_ms = _NEVER_MS
        self._last_slot = -1
        for level in range(_LEVELS):
            buckets = self._far[level]
            early_ms = self._early_ms(level)
            for index, bucket in enumerate(buckets):
                if bucket is None:
                    continue
                opens_ms: i64 = bucket.awake_ms - early_ms
                if opens_ms < self._horizon_ms:
                    buckets[index] = None
                    self._opened.append(bucket)
                else:
                    self._opens_ms = min(self._opens_ms, opens_ms)
        self._opened.sort(key=_begin, reverse=True)
