"""Verbs of the lifecycle broken on purpose: the simulator must notice that the table of transitions does not say so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from disqued.core.jobs.job import BY_TIMER, DELIVERED, LEASED, Job
from disqued.core.lifecycle.lifecycle import Lifecycle
from disqued.core.queues.queue import Queue
from disqued.testing.sim import simulate
from disqued.testing.transitioncheck import POSSIBLE

pytestmark = pytest.mark.skipif(
    not POSSIBLE, reason="compiled functions cannot be replaced; the interpreted build runs this"
)
SEEDS = range(50)
"""Most are detected by the first seed; some verbs are rare, and the test ends when a run detects it."""

_take = Lifecycle.take
_dequeue = Lifecycle.dequeue
_enqueue = Lifecycle.enqueue
_place = Lifecycle.place


def take_without_flag(self: Lifecycle, queue: Queue, now_ms: int) -> Job | None:
    job = _take(self, queue, now_ms)
    if job is not None:
        job.flags &= ~LEASED
    return job


def dequeue_with_flag(self: Lifecycle, job: Job) -> bool:
    if not _dequeue(self, job):
        return False
    job.flags |= DELIVERED | LEASED
    return True


def enqueue_with_record(self: Lifecycle, job: Job, now_ms: int, counting: int) -> bool:
    self.journal.keep(job)
    return _enqueue(self, job, now_ms, counting)


def enqueue_with_count(self: Lifecycle, job: Job, now_ms: int, counting: int) -> bool:
    job.additional_deliveries += 1
    return _enqueue(self, job, now_ms, counting)


def place_with_event(self: Lifecycle, job: Job, now_ms: int) -> None:
    _place(self, job, now_ms)
    self.events.about_to_requeue(job)


@pytest.mark.parametrize(
    ("verb", "broken"),
    [
        ("take", take_without_flag),
        ("dequeue", dequeue_with_flag),
        ("enqueue", enqueue_with_record),
        ("enqueue", enqueue_with_count),
        ("place", place_with_event),
    ],
)
def test_verb_that_violates_the_table_is_detected(
    monkeypatch: pytest.MonkeyPatch, verb: str, broken: Callable[..., object]
) -> None:
    monkeypatch.setattr(Lifecycle, verb, broken)
    found = f"no row of the table of transitions says {verb}"
    assert any(found in text for seed in SEEDS for text in simulate(seed).violations)


def test_flags_changed_outside_the_verbs_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    is_leased = Lifecycle.is_leased

    def change_flags(self: Lifecycle, job: Job, now_ms: int) -> bool:
        job.flags ^= BY_TIMER
        return is_leased(self, job, now_ms)

    monkeypatch.setattr(Lifecycle, "is_leased", change_flags)
    found = "something other than a verb changed"
    assert any(found in text for seed in SEEDS for text in simulate(seed).violations)
