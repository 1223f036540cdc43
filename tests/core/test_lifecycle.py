"""Every verb of the lifecycle obeys the table of transitions, and wake times follow the rules."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.core.fates.fate import EXPIRED, MOVED
from disqued.core.jobs.attributes import AFTER, NAMED, REASON
from disqued.core.jobs.attributes import of as attributes_of
from disqued.core.jobs.job import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    DELAYED,
    DELIVERED,
    MAX_COUNTER,
    QUEUED,
    STATE_NAMES,
    WAIT_REPL,
    Job,
)
from disqued.core.jobs.jobid import JobIds
from disqued.core.jobs.parents import ELSE_RUN, pack_parents, with_all_met
from disqued.core.lifecycle.lifecycle import COUNT_DELIVERY, COUNT_NACK, SILENT, UNCOUNTED, Lifecycle
from disqued.core.lifecycle.listener import Listener
from disqued.core.lifecycle.pausing import set_local_pause
from disqued.core.lifecycle.transitions import TRANSITIONS
from disqued.core.memory.accounting import BASE_BYTES
from disqued.core.queues.queue import PAUSED_IN, PAUSED_OUT
from disqued.testing.transitioncheck import POSSIBLE, TransitionCheck

NOW_MS = 1_800_000_000_000
TTL_S = 1000


@pytest.fixture(autouse=True)
def check() -> Iterator[TransitionCheck]:
    """Compares each call of a verb with the table, in every test of this module."""
    with TransitionCheck() as checking:
        yield checking
    assert not checking.violations


def reached(verb: str, state: int) -> set[int]:
    """The states to which a verb may lead from a state; the same state where the table has no row."""
    rows = [row for row in TRANSITIONS if row.verb == verb and state in row.before]
    return {state if row.after is None else row.after for row in rows} or {state}


class Life:
    """A lifecycle, with jobs that its verbs brought to the state that a test needs."""

    def __init__(self, seed: int = 0) -> None:
        chance = random.Random(seed)
        self.lifecycle = Lifecycle(chance.random)
        self._ids = JobIds(b"5ca1ab1e" + b"0" * 32, chance.randbytes)
        self._ctime = NOW_MS * 1_000_000

    def new_job(self, retry_s: int = 60, delay_s: int = 0, repl: int = 1) -> Job:
        self._ctime += 1
        job_id = self._ids.make(TTL_S, retry_s > 0)
        return Job(job_id, b"queue", b"body", self._ctime, NOW_MS // 1000 + TTL_S, delay_s, retry_s, repl)

    def admitted(self, retry_s: int = 60, delay_s: int = 0) -> Job:
        job = self.new_job(retry_s, delay_s)
        self.lifecycle.admit(job, NOW_MS)
        return job

    def in_state(self, state: int, retry_s: int = 60) -> Job:
        """A job that the verbs brought to this state."""
        if state == WAIT_REPL:
            job = self.new_job(retry_s)
            self.lifecycle.await_copies(job, NOW_MS)
            return job
        job = self.admitted(retry_s)
        if state == ACTIVE:
            assert self.lifecycle.dequeue(job)
        elif state == ACKED:
            assert self.lifecycle.acknowledge(job, NOW_MS)
        assert job.state == state
        return job

    def take(self, _job: Job) -> None:
        """Take the oldest job of the queue; a job of the test is the only one in it."""
        queue = self.lifecycle.make_queue(b"queue", NOW_MS)
        self.lifecycle.take(queue, NOW_MS)


VERBS: dict[str, Callable[[Life, Job], object]] = {
    "enqueue": lambda life, job: life.lifecycle.enqueue(job, NOW_MS, COUNT_DELIVERY),
    "take": Life.take,
    "dequeue": lambda life, job: life.lifecycle.dequeue(job),
    "acknowledge": lambda life, job: life.lifecycle.acknowledge(job, NOW_MS),
}


@pytest.mark.parametrize("state", range(len(STATE_NAMES)), ids=[name.decode() for name in STATE_NAMES])
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_leads_to_the_state_in_the_table_or_leaves_the_job_unchanged(verb: str, state: int) -> None:
    life = Life()
    job = life.in_state(state)
    VERBS[verb](life, job)
    assert job.state in reached(verb, state)


class Taker(Listener):
    """Takes all jobs over."""

    def attempt_failed(self, _job: Job, _counting: int) -> bool:
        return True

    def expiring(self, _job: Job) -> bool:
        return True


class Calls(Life):
    """Calls of the verbs that together use every row of the table."""

    def shared(self, retry_s: int = 60) -> Job:
        """An active job that other nodes may hold, and that was queued before."""
        job = self.in_state(ACTIVE, retry_s)
        job.delivered = (b"1" * 40, b"2" * 40)
        return job

    def of_another_node(self, retry_s: int = 60, delay_s: int = 0) -> Job:
        job = self.new_job(retry_s, delay_s)
        job.delivered = (b"1" * 40, b"2" * 40)
        return job

    def become_known(self) -> None:
        lifecycle = self.lifecycle
        lifecycle.keep_copy(self.of_another_node(), NOW_MS)
        lifecycle.keep_import(self.of_another_node(), NOW_MS)
        lifecycle.keep_dummy(self.of_another_node(), NOW_MS)
        for delay_s in (0, 100):
            for complete in (True, False):
                job = self.of_another_node(delay_s=delay_s)
                lifecycle.keep_loaded(job, NOW_MS, stored=QUEUED, controlled=complete, complete=complete)
            for place in (lifecycle.place, lambda job, _now_ms: lifecycle.place_elsewhere(job)):
                waiting = self.new_job(delay_s=delay_s)
                lifecycle.await_copies(waiting, NOW_MS)
                place(waiting, NOW_MS)
            waiting = self.new_job(delay_s=delay_s)
            lifecycle.await_copies(waiting, NOW_MS)
            lifecycle.place(waiting, NOW_MS)

    def be_queued(self) -> None:
        lifecycle = self.lifecycle
        for counting in (SILENT, COUNT_DELIVERY, COUNT_NACK, UNCOUNTED):
            lifecycle.enqueue(self.shared(), NOW_MS, counting)
        late = self.of_another_node()
        lifecycle.keep_import(late, NOW_MS)
        lifecycle.enqueue(late, NOW_MS + 60_000, COUNT_DELIVERY)
        taken = self.admitted(retry_s=0)
        self.take_only(taken, NOW_MS)
        taken.requeue_at_ms = NOW_MS  # as the message ENQUEUE sets it
        lifecycle.enqueue(taken, NOW_MS, SILENT)

    def take_only(self, job: Job, now_ms: int) -> None:
        """Take a job that may not be the oldest one."""
        queue = self.lifecycle.make_queue(b"queue", now_ms)
        while (first := queue.order.first()) is not None and first is not job:
            self.lifecycle.dequeue(first)
        self.lifecycle.take(queue, now_ms)

    def leave_the_queue(self) -> None:
        lifecycle = self.lifecycle
        self.take_only(self.admitted(), NOW_MS)
        self.take_only(self.admitted(), NOW_MS + 30_000)
        set_local_pause(lifecycle, b"queue", PAUSED_OUT, NOW_MS)
        self.take_only(self.admitted(), NOW_MS)
        set_local_pause(lifecycle, b"queue", 0, NOW_MS)

    def be_postponed(self) -> None:
        lifecycle = self.lifecycle
        lifecycle.postpone_until(self.admitted(retry_s=0), NOW_MS, NOW_MS + 1000, COUNT_NACK, here=True)
        lifecycle.postpone(self.admitted(), NOW_MS)
        lifecycle.postpone(self.admitted(retry_s=0), NOW_MS)
        taken = self.admitted()
        self.take_only(taken, NOW_MS)
        lifecycle.end_lease(taken)
        lifecycle.delay_until(self.shared(), NOW_MS, NOW_MS + 1000)
        for counting in (COUNT_NACK, UNCOUNTED):
            for here in (True, False):
                for make in (self.shared, self.admitted):
                    lifecycle.postpone_until(make(), NOW_MS, NOW_MS + 1000, counting, here=here)
        lifecycle.requeue_loaded(self.shared(), NOW_MS, 0)
        lifecycle.requeue_loaded(self.shared(), NOW_MS, NOW_MS + 100)

    def be_moved(self) -> None:
        lifecycle = self.lifecycle
        for make in (self.shared, self.admitted):
            lifecycle.park(make(), NOW_MS)
        named = self.shared()
        lifecycle.set_attributes(named, attributes_of({NAMED: b""}))
        lifecycle.acknowledge(named, NOW_MS)
        lifecycle.drop(named)

    def held(self, delay_s: int = 0, retry_s: int = 60) -> Job:
        """A new job that waits for a parent."""
        job = self.new_job(retry_s, delay_s)
        job.extra = attributes_of({AFTER: pack_parents([self.new_job().id], ELSE_RUN)})
        return job

    def wait_for_parents(self) -> None:
        lifecycle = self.lifecycle
        lifecycle.keep_copy(self.held(), NOW_MS)
        for complete in (True, False):
            lifecycle.keep_loaded(self.held(), NOW_MS, stored=ACTIVE, controlled=False, complete=complete)
        for delay_s in (0, 100):
            job = self.held(delay_s)
            lifecycle.admit(job, NOW_MS)
            lifecycle.park(job, NOW_MS)
            assert job.extra is not None
            lifecycle.set_attributes(job, attributes_of({AFTER: with_all_met(job.extra.get(AFTER) or b"")}))
            lifecycle.free(job, NOW_MS)
        copy = self.held()
        copy.delivered = (b"1" * 40, b"2" * 40)
        lifecycle.keep_copy(copy, NOW_MS)
        lifecycle.delay_until(copy, NOW_MS, 0)
        lifecycle.free_elsewhere(copy)
        lifecycle.free(copy, NOW_MS)

    def fail(self) -> None:
        """Be taken over by a room after a last attempt, and at the end of its life."""
        lifecycle = self.lifecycle
        lifecycle.events.add(Taker())
        lifecycle.enqueue(self.shared(), NOW_MS, COUNT_NACK)
        lifecycle.requeue(self.shared(), NOW_MS)
        lifecycle.wake(self.shared(), NOW_MS + 2 * TTL_S * 1000)

    def be_woken(self) -> None:
        lifecycle = self.lifecycle
        for make in (self.shared, self.admitted):
            for early_ms in (40_000, 400, -400):
                job = make()
                lifecycle.wake(job, job.requeue_at_ms - early_ms)
            job = make()
            lifecycle.wake(job, job.requeue_at_ms - 400)
            lifecycle.wake(job, job.requeue_at_ms)
        lifecycle.wake(self.admitted(), NOW_MS + 2 * TTL_S * 1000)
        acknowledged = self.shared()
        lifecycle.acknowledge(acknowledged, NOW_MS)
        lifecycle.wake(acknowledged, NOW_MS + 2000)
        taken = self.admitted(retry_s=0)
        self.take_only(taken, NOW_MS)
        taken.requeue_at_ms = NOW_MS
        lifecycle.wake(taken, NOW_MS)
        set_local_pause(lifecycle, b"queue", PAUSED_IN, NOW_MS)
        paused = self.shared()
        lifecycle.wake(paused, paused.requeue_at_ms)


@pytest.mark.skipif(not POSSIBLE, reason="compiled functions cannot be wrapped; the interpreted build runs this")
def test_every_row_of_the_table_is_reached(check: TransitionCheck) -> None:
    for scene in (
        Calls.become_known,
        Calls.be_queued,
        Calls.leave_the_queue,
        Calls.be_postponed,
        Calls.be_woken,
        Calls.be_moved,
        Calls.wait_for_parents,
        Calls.fail,
    ):
        scene(Calls())
    for state in range(len(STATE_NAMES)):
        life = Life()
        life.lifecycle.set_attributes(life.in_state(state), attributes_of({REASON: b"why"}))
        for end in (life.lifecycle.dequeue, life.lifecycle.drop):
            end(life.in_state(state))
        life.lifecycle.end(life.in_state(state), EXPIRED)
        life.lifecycle.end(life.in_state(state), MOVED)
        life.lifecycle.acknowledge(life.in_state(state), NOW_MS, MOVED)
        life.lifecycle.acknowledge(life.in_state(state), NOW_MS)
    assert [row for row in TRANSITIONS if row not in check.used] == []


@given(
    retry_s=st.sampled_from([0, 1, 60]),
    delay_s=st.sampled_from([0, 5]),
    verbs=st.lists(st.sampled_from([*VERBS, "postpone", "wake"]), max_size=30),
    steps_ms=st.lists(st.integers(0, 40_000), min_size=30, max_size=30),
)
def test_in_random_histories_every_change_of_state_is_in_the_table(
    retry_s: int, delay_s: int, verbs: list[str], steps_ms: list[int]
) -> None:
    life = Life()
    lifecycle = life.lifecycle
    job = life.admitted(retry_s, delay_s)
    now_ms = NOW_MS
    for verb, step_ms in zip(verbs, steps_ms, strict=False):
        now_ms += step_ms
        before = job.state
        allowed = {before} | reached(verb, before)
        if verb == "postpone":
            if job.state != ACKED:  # no caller postpones a job that is done
                lifecycle.postpone(job, now_ms)
        elif verb == "wake":
            allowed |= reached("enqueue", before)
            lifecycle.wake(job, now_ms)
            if lifecycle.table.get(job.id) is None:
                break
        else:
            VERBS[verb](life, job)
        assert job.state in allowed
        queue = lifecycle.queues.get(b"queue")
        assert (0 if queue is None else queue.length) == (job.state == QUEUED), (
            "a job is in its queue exactly while it is queued"
        )
        assert lifecycle.queued_jobs == (job.state == QUEUED)
        never_queued = not job.flags & BCAST_QUEUED and job.nacks == 0
        assert lifecycle.queues.delayed_jobs == (delay_s > 0 and job.state == ACTIVE and never_queued)
        assert bool(job.flags & DELAYED) == lifecycle.queues.delayed_jobs
        assert job.awake_ms > 0, "every job has a wake time"
    if lifecycle.table.get(job.id) is not None:
        lifecycle.drop(job)
    assert lifecycle.queues.delayed_jobs == 0
    queue = lifecycle.queues.get(b"queue")
    if queue is not None:
        lifecycle.remove_queue(queue)
    assert lifecycle.memory.used_bytes == BASE_BYTES


@pytest.mark.parametrize("state", range(len(STATE_NAMES)))
def test_a_job_can_be_dropped_in_any_state(state: int) -> None:
    life = Life()
    job = life.in_state(state)
    life.lifecycle.drop(job)
    assert life.lifecycle.table.count == 0
    assert life.lifecycle.memory.oldest_evictable() is None
    assert life.lifecycle.timers.due(NOW_MS + TTL_S * 2000, 10) == []


def test_the_highest_replication_count_is_that_of_unfinished_jobs() -> None:
    life = Life()
    lifecycle = life.lifecycle
    assert lifecycle.replication_counts.highest() == 1
    jobs = {repl: life.new_job(repl=repl) for repl in (3, 1, 65535, 2, 7)}
    for job in jobs.values():
        lifecycle.await_copies(job, NOW_MS)
    for repl, left in ((65535, 7), (1, 7), (3, 7), (7, 2), (2, 1)):
        if repl % 2:
            lifecycle.acknowledge(jobs[repl], NOW_MS)
            lifecycle.acknowledge(jobs[repl], NOW_MS)
        lifecycle.drop(jobs[repl])
        assert lifecycle.replication_counts.highest() == left


def test_a_job_wakes_half_a_second_before_it_is_requeued() -> None:
    job = Life().admitted(retry_s=60)
    assert job.flags & BCAST_WILLQUEUE
    assert job.awake_ms == job.requeue_at_ms - 500
    assert -250 <= job.requeue_at_ms - (NOW_MS + 60_000) < 250


def test_a_job_wakes_no_later_than_a_second_after_its_expiry() -> None:
    job = Life().admitted(retry_s=2 * TTL_S)
    assert job.awake_ms == NOW_MS + TTL_S * 1000 + 1000


def test_requeue_times_are_spread_over_half_a_second() -> None:
    life = Life()
    shifts = [life.admitted(retry_s=60).requeue_at_ms - NOW_MS - 60_000 for _ in range(3000)]
    assert min(shifts) in range(-250, -240)
    assert max(shifts) in range(240, 250)
    assert abs(sum(shifts) / len(shifts)) < 10


def test_the_first_queueing_is_silent_and_later_ones_are_counted() -> None:
    life = Life()
    job = life.admitted()
    for counting, counters in (
        (COUNT_DELIVERY, (0, 1)),
        (COUNT_NACK, (1, 1)),
        (SILENT, (1, 1)),
        (COUNT_DELIVERY, (1, 2)),
    ):
        life.lifecycle.dequeue(job)
        life.lifecycle.enqueue(job, NOW_MS, counting)
        assert (job.nacks, job.additional_deliveries) == counters


def test_counters_stop_at_the_largest_16_bit_number() -> None:
    life = Life()
    job = life.admitted()
    job.nacks = job.additional_deliveries = MAX_COUNTER
    for counting in (COUNT_NACK, COUNT_DELIVERY):
        life.lifecycle.dequeue(job)
        life.lifecycle.enqueue(job, NOW_MS, counting)
    assert (job.nacks, job.additional_deliveries) == (MAX_COUNTER, MAX_COUNTER)


def test_an_at_most_once_job_is_queued_only_once() -> None:
    life = Life()
    job = life.admitted(retry_s=0)
    assert job.requeue_at_ms == 0
    life.lifecycle.dequeue(job)
    assert not life.lifecycle.enqueue(job, NOW_MS, COUNT_NACK)
    assert job.nacks == 0


def test_a_delivered_at_most_once_job_can_be_evicted_and_an_unacknowledged_at_least_once_job_cannot() -> None:
    life = Life()
    once = life.admitted(retry_s=0)
    again = life.admitted(retry_s=60)
    life.take(once)
    life.take(again)
    assert once.flags & DELIVERED
    assert life.lifecycle.memory.oldest_evictable() is once
    life.lifecycle.drop(once)
    assert life.lifecycle.memory.oldest_evictable() is None
