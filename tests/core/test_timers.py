"""The timer wheel compared with a sorted list: items are woken once, neither early nor late."""

from __future__ import annotations

import sys
from itertools import pairwise
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from disqued.core.timers.timed import DUE, Timed
from disqued.core.timers.wheel import MOVES_PER_CALL, NEAR_MS, TimerWheel

START_MS = 1_800_000_000_000
LATENESS_MS = 16
HOUR_MS = 3_600_000
PLENTY = 1 << 30


def armed(timers: TimerWheel, awake_ms: int) -> Timed:
    timed = Timed()
    timers.arm(timed, awake_ms)
    return timed


def due_by(timers: TimerWheel, until_ms: int) -> list[Timed]:
    """Call the timer wheel at its `next_ms`, as a node does, up to `until_ms`; return all due items."""
    found: list[Timed] = []
    while 0 < timers.next_ms() <= until_ms:
        found += timers.due(until_ms, PLENTY)
    return found


def test_items_are_woken_neither_early_nor_more_than_16_ms_late() -> None:
    timers = TimerWheel()
    timers.due(START_MS, PLENTY)
    for distance_ms in (0, 1, 15, 16, 17, 100, 4096, 8192, 60_000, 86_400_000):
        awake_ms = START_MS + distance_ms
        timed = armed(timers, awake_ms)
        assert due_by(timers, awake_ms - 1) == []
        assert due_by(timers, awake_ms + LATENESS_MS) == [timed]


def test_a_wake_time_in_the_past_is_due_at_once() -> None:
    timers = TimerWheel()
    timers.due(START_MS, PLENTY)
    timed = armed(timers, START_MS - HOUR_MS)
    assert timers.next_ms() <= START_MS
    assert timers.due(START_MS, PLENTY) == [timed]


@pytest.mark.parametrize("never_ms", [0, -1, -START_MS])
def test_zero_and_less_mean_never(never_ms: int) -> None:
    timers = TimerWheel()
    timed = armed(timers, START_MS)
    timers.arm(timed, never_ms)
    assert timed.awake_ms == 0
    assert due_by(timers, START_MS + HOUR_MS) == []


def test_a_disarmed_item_is_not_woken_and_can_be_disarmed_again() -> None:
    timers = TimerWheel()
    timed = armed(timers, START_MS)
    timers.disarm(timed)
    timers.disarm(timed)
    assert timed.awake_ms == 0
    assert due_by(timers, START_MS + HOUR_MS) == []


def test_arming_again_replaces_the_wake_time() -> None:
    timers = TimerWheel()
    timed = armed(timers, START_MS + 1000)
    timers.arm(timed, START_MS + 9000)
    assert due_by(timers, START_MS + 8999) == []
    assert due_by(timers, START_MS + 9016) == [timed]
    assert due_by(timers, START_MS + HOUR_MS) == []


def test_due_items_come_in_order_and_no_more_than_the_limit() -> None:
    timers = TimerWheel()
    timers.due(START_MS, PLENTY)
    timed = [armed(timers, START_MS + 20 * number) for number in range(100)]
    seen: list[Timed] = []
    for calls in range(1, 11):
        seen += timers.due(START_MS + HOUR_MS, 10)
        assert len(seen) == 10 * calls
        assert calls == 10 or timers.next_ms() <= START_MS + HOUR_MS, "more items are due at once"
    assert seen == timed
    assert timers.next_ms() == 0


def test_a_call_is_requested_only_when_it_does_something() -> None:
    timers = TimerWheel()
    timers.due(START_MS, PLENTY)
    armed(timers, START_MS + HOUR_MS)
    calls_ms: list[int] = []
    while (next_ms := timers.next_ms()) != 0:
        assert not calls_ms or next_ms > calls_ms[-1], "the same time was requested again"
        calls_ms.append(next_ms)
        timers.due(next_ms, PLENTY)
    assert len(calls_ms) <= 3, "one call per level opens the far bucket, one returns the item"


def test_items_that_are_disarmed_leave_nothing_behind() -> None:
    """Clients choose times to live freely: each could leave a bucket until its time, years later."""
    timers = TimerWheel()
    timers.due(START_MS, PLENTY)
    timed = Timed()
    chance = Random(19)
    before = sys.getallocatedblocks()
    for _ in range(100_000):
        timers.arm(timed, START_MS + chance.randrange(136 * 365 * 24 * HOUR_MS))
        timers.disarm(timed)
    assert sys.getallocatedblocks() - before < 10_000


def test_the_latest_possible_wake_time_is_accepted() -> None:
    timers = TimerWheel()
    timers.due(START_MS, PLENTY)
    timed = armed(timers, 1 << 61)
    assert due_by(timers, (1 << 61) - 1) == []
    assert due_by(timers, (1 << 61) + LATENESS_MS) == [timed]


def test_after_a_clock_jump_items_of_wide_buckets_come_in_order() -> None:
    """An item that was armed long ago is in a wide bucket, with more items than one call moves."""
    timers = TimerWheel()
    timers.due(START_MS, PLENTY)
    wide = {armed(timers, START_MS + HOUR_MS - number): HOUR_MS - number for number in range(3 * MOVES_PER_CALL)}
    timers.due(START_MS + HOUR_MS // 2 + HOUR_MS // 4, PLENTY)
    narrow = {armed(timers, START_MS + HOUR_MS - 2 * number): HOUR_MS - 2 * number for number in range(100)}
    distance_of = wide | narrow
    woken: list[int] = []
    while timers.next_ms():
        woken += [distance_of[timed] for timed in timers.due(START_MS + 2 * HOUR_MS, PLENTY)]
    assert len(woken) == len(distance_of)
    assert all(later >= earlier - LATENESS_MS for earlier, later in pairwise(woken))


def test_a_far_bucket_is_opened_in_slices_before_it_is_due() -> None:
    timers = TimerWheel()
    timers.due(START_MS, PLENTY)
    slices = 5
    awake_ms = START_MS + HOUR_MS
    for number in range(slices * MOVES_PER_CALL):
        armed(timers, awake_ms + number % 1000)
    calls = 0
    while timers.next_ms() < awake_ms:
        assert timers.due(max(timers.next_ms(), START_MS + HOUR_MS - 10_000), PLENTY) == []
        calls += 1
        assert calls < 20
    assert calls >= slices, "a call moves at most MOVES_PER_CALL items"
    assert len(due_by(timers, awake_ms + 1000 + LATENESS_MS)) == slices * MOVES_PER_CALL


def test_after_a_clock_jump_the_earliest_wake_times_come_first() -> None:
    timers = TimerWheel()
    timers.due(START_MS, PLENTY)
    awake_at = {}
    for minute in range(40):
        for _ in range(MOVES_PER_CALL // 4):
            awake_at[armed(timers, START_MS + minute * 60_000)] = minute
    woken: list[int] = []
    while timers.next_ms():
        woken += [awake_at[timed] for timed in timers.due(START_MS + HOUR_MS, PLENTY)]
    assert len(woken) == len(awake_at)
    assert woken == sorted(woken)


def test_an_item_that_is_disarmed_or_rearmed_after_it_became_due_loses_its_mark() -> None:
    timers = TimerWheel()
    timers.due(START_MS, PLENTY)
    timed, dropped, moved = (armed(timers, START_MS - 1) for _ in range(3))
    assert timers.due(START_MS, PLENTY) == [timed, dropped, moved]
    timers.disarm(dropped)
    timers.arm(moved, START_MS + 100)
    assert [each.awake_ms for each in (timed, dropped, moved)] == [DUE, 0, START_MS + 100]


class TimerWheelMachine(RuleBasedStateMachine):
    """Arms, rearms and disarms items at random times, while time passes in steps and jumps."""

    armed_items = Bundle("armed_items")

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = START_MS
        self.timers = TimerWheel()
        self.expected: dict[Timed, int] = {}
        """The armed items and their wake times."""

    @rule(
        target=armed_items,
        distance_ms=st.one_of(st.integers(-20, 100), st.integers(0, 20_000), st.integers(0, 1 << 40)),
        copies=st.integers(1, 3),
    )
    def arm(self, distance_ms: int, copies: int) -> object:
        made = [armed(self.timers, self.now_ms + distance_ms) for _ in range(copies)]
        self.expected |= dict.fromkeys(made, self.now_ms + distance_ms)
        return multiple(*made)

    @rule(timed=armed_items, distance_ms=st.integers(-20, 20_000))
    def rearm(self, timed: Timed, distance_ms: int) -> None:
        self.timers.arm(timed, self.now_ms + distance_ms)
        self.expected[timed] = self.now_ms + distance_ms

    @rule(timed=consumes(armed_items))
    def disarm(self, timed: Timed) -> None:
        self.timers.disarm(timed)
        self.expected.pop(timed, None)

    @rule(passed_ms=st.one_of(st.integers(0, 40), st.integers(0, 10_000), st.integers(0, 8 * HOUR_MS)))
    def let_time_pass_as_a_node_does(self, passed_ms: int) -> None:
        """Each call comes at `next_ms`, so any lateness is that of the timer wheel."""
        end_ms = self.now_ms + passed_ms
        while 0 < self.timers.next_ms() <= end_ms:
            self.now_ms = max(self.now_ms, self.timers.next_ms())
            self.wake(self.timers.due(self.now_ms, PLENTY))
        self.now_ms = end_ms
        assert all(time > end_ms - LATENESS_MS for time in self.expected.values()), "woken late"

    @rule(passed_ms=st.integers(0, 8 * HOUR_MS), limit=st.integers(1, 3))
    def jump(self, passed_ms: int, limit: int) -> None:
        """The node did not run for a while (a stopped process), and then asks for few items at a time."""
        self.now_ms += passed_ms
        self.wake(self.timers.due(self.now_ms, limit))

    def wake(self, found: list[Timed]) -> None:
        times = [self.expected.pop(timed) for timed in found]
        assert all(time <= self.now_ms for time in times), "woken early"
        assert [time // LATENESS_MS for time in times] == sorted(time // LATENESS_MS for time in times)
        assert all(timed.awake_ms == DUE for timed in found)

    @invariant()
    def the_next_call_is_never_too_late(self) -> None:
        if self.expected:
            assert 0 < self.timers.next_ms() <= min(self.expected.values()) + LATENESS_MS

    def teardown(self) -> None:
        """In the end every armed item is woken once, and the timer wheel is empty."""
        end_ms = max([self.now_ms, *self.expected.values()]) + LATENESS_MS
        found = due_by(self.timers, end_ms)
        assert len(found) == len(set(found))
        assert set(found) == set(self.expected)
        while self.timers.next_ms():
            assert self.timers.due(max(self.timers.next_ms(), end_ms), PLENTY) == []
        assert self.timers._near == {}
        assert all(bucket is None for level in self.timers._far for bucket in level)
        assert self.timers._opened == []


TestTimerWheelMachine = TimerWheelMachine.TestCase
TestTimerWheelMachine.settings = settings(stateful_step_count=40)


def first_call_that_wakes(timers: TimerWheel, awake_ms: int) -> int:
    """When an item armed for `awake_ms` is woken by a node that calls the timer wheel at its `next_ms`."""
    timers.due(START_MS, PLENTY)
    armed(timers, awake_ms)
    now_ms = START_MS
    while not timers.due(now_ms, PLENTY):
        now_ms = max(timers.next_ms(), now_ms + 1)
    return now_ms


@pytest.mark.parametrize("distance_ms", [1000, 60_000])
def test_timer_wheels_with_different_phases_wake_at_different_times_and_none_is_late(distance_ms: int) -> None:
    awake_ms = START_MS + distance_ms
    woken_ms = {first_call_that_wakes(TimerWheel(phase_ms), awake_ms) for phase_ms in range(NEAR_MS)}
    assert woken_ms == set(range(awake_ms + 1, awake_ms + 1 + NEAR_MS))
