"""The life of a job: every verb obeys the table of transitions, and the wake times follow the rules."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from disqued.core.lifecycle.lifecycle import COUNT_DELIVERY, COUNT_NACK, SILENT, TRANSITIONS, Lifecycle
from disqued.core.memory.accounting import BASE_BYTES
from disqued.testing.jobstates import page

NOW_MS = 1_800_000_000_000
TTL_S = 1000


class Life:
    """A lifecycle with jobs in it, for tests that call its verbs."""

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
        """A job that came to this state by the verbs."""
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
        """Take the oldest job of the queue, which is the job itself if it is queued at all."""
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
def test_a_verb_does_what_the_table_says_and_nothing_where_the_table_is_silent(verb: str, state: int) -> None:
    life = Life()
    job = life.in_state(state)
    VERBS[verb](life, job)
    assert job.state == TRANSITIONS.get((verb, state), state)


@given(
    retry_s=st.sampled_from([0, 1, 60]),
    delay_s=st.sampled_from([0, 5]),
    verbs=st.lists(st.sampled_from([*VERBS, "postpone", "wake"]), max_size=30),
    steps_ms=st.lists(st.integers(0, 40_000), min_size=30, max_size=30),
)
def test_on_any_history_every_change_of_state_is_in_the_table(
    retry_s: int, delay_s: int, verbs: list[str], steps_ms: list[int]
) -> None:
    life = Life()
    lifecycle = life.lifecycle
    job = life.admitted(retry_s, delay_s)
    now_ms = NOW_MS
    for verb, step_ms in zip(verbs, steps_ms, strict=False):
        now_ms += step_ms
        before = job.state
        allowed = {before, TRANSITIONS.get((verb, before), before)}
        if verb == "postpone":
            lifecycle.postpone(job, now_ms)
        elif verb == "wake":
            allowed.add(TRANSITIONS.get(("enqueue", before), before))
            lifecycle.wake(job, now_ms)
            if lifecycle.table.get(job.id) is None:
                break
        else:
            VERBS[verb](life, job)
        assert job.state in allowed
        queue = lifecycle.queues.get(b"queue")
        assert (0 if queue is None else queue.length) == (job.state == QUEUED), "it is in its queue while queued"
        assert lifecycle.queued_jobs == (job.state == QUEUED)
        never_queued = not job.flags & BCAST_QUEUED and job.nacks == 0
        assert lifecycle.delayed_jobs == (delay_s > 0 and job.state == ACTIVE and never_queued)
        assert bool(job.flags & DELAYED) == lifecycle.delayed_jobs
        assert job.awake_ms > 0, "no live job is without a wake time"
    if lifecycle.table.get(job.id) is not None:
        lifecycle.drop(job)
    assert lifecycle.delayed_jobs == 0
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


def test_the_highest_number_of_copies_is_that_of_the_jobs_that_are_not_done() -> None:
    life = Life()
    lifecycle = life.lifecycle
    assert lifecycle.levels.highest() == 1
    jobs = {repl: life.new_job(repl=repl) for repl in (3, 1, 65535, 2, 7)}
    for job in jobs.values():
        lifecycle.await_copies(job, NOW_MS)
    for repl, left in ((65535, 7), (1, 7), (3, 7), (7, 2), (2, 1)):
        if repl % 2:
            lifecycle.acknowledge(jobs[repl], NOW_MS)
            lifecycle.acknowledge(jobs[repl], NOW_MS)
        lifecycle.drop(jobs[repl])
        assert lifecycle.levels.highest() == left


def test_a_job_that_is_requeued_wakes_half_a_second_before_to_announce_it() -> None:
    job = Life().admitted(retry_s=60)
    assert job.flags & BCAST_WILLQUEUE
    assert job.awake_ms == job.requeue_at_ms - 500
    assert -250 <= job.requeue_at_ms - (NOW_MS + 60_000) < 250


def test_announced_or_not_a_job_wakes_no_later_than_a_second_after_its_expiry() -> None:
    job = Life().admitted(retry_s=2 * TTL_S)
    assert job.awake_ms == NOW_MS + TTL_S * 1000 + 1000


def test_the_requeue_times_spread_over_half_a_second() -> None:
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


def test_counters_stay_at_what_16_bits_can_hold() -> None:
    life = Life()
    job = life.admitted()
    job.nacks = job.additional_deliveries = MAX_COUNTER
    for counting in (COUNT_NACK, COUNT_DELIVERY):
        life.lifecycle.dequeue(job)
        life.lifecycle.enqueue(job, NOW_MS, counting)
    assert (job.nacks, job.additional_deliveries) == (MAX_COUNTER, MAX_COUNTER)


def test_an_at_most_once_job_is_queued_once_whatever_happens_to_it() -> None:
    life = Life()
    job = life.admitted(retry_s=0)
    assert job.requeue_at_ms == 0
    life.lifecycle.dequeue(job)
    assert not life.lifecycle.enqueue(job, NOW_MS, COUNT_NACK)
    assert job.nacks == 0


def test_a_delivered_at_most_once_job_may_be_evicted_and_an_unacknowledged_other_may_not() -> None:
    life = Life()
    once = life.admitted(retry_s=0)
    again = life.admitted(retry_s=60)
    life.take(once)
    life.take(again)
    assert once.flags & DELIVERED
    assert life.lifecycle.memory.oldest_evictable() is once
    life.lifecycle.drop(once)
    assert life.lifecycle.memory.oldest_evictable() is None


def test_the_page_of_states_is_the_table_of_transitions() -> None:
    committed = Path(__file__).parents[2] / "docs" / "architecture" / "job-states.md"
    assert committed.read_text() == page(), "run: python -m disqued.testing.jobstates > docs/architecture/job-states.md"
