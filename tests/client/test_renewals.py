"""When held jobs are renewed."""

from __future__ import annotations

import pytest

from disqued.client.renewals import RenewalSchedule


def test_job_is_renewed_soon_after_the_fetch_and_then_at_half_of_its_retry_time() -> None:
    schedule = RenewalSchedule()
    schedule.hold("job", due_s=10.25)
    assert schedule.due(10.0) == []
    assert schedule.due(10.25) == ["job"]
    schedule.renewed("job", retry_s=20, now_s=10.25)
    assert schedule.due(20.2) == []
    assert schedule.due(22.3) == ["job"]


def test_job_whose_lease_is_known_is_renewed_at_half_of_it() -> None:
    schedule = RenewalSchedule()
    schedule.hold_leased("job", lease_ms=20_000, now_s=10.0)
    assert schedule.due(20.9) == []
    assert schedule.due(21.0) == ["job"]


def test_job_that_is_never_delivered_again_is_not_renewed() -> None:
    schedule = RenewalSchedule()
    schedule.hold_leased("job", lease_ms=-1, now_s=10.0)
    assert schedule.due(1e9) == []
    assert len(schedule) == 1


def test_at_most_once_job_is_renewed_once() -> None:
    schedule = RenewalSchedule()
    schedule.hold("job", due_s=1.0)
    schedule.renewed("job", retry_s=0, now_s=1.0)
    assert schedule.due(1e9) == []
    assert len(schedule) == 1


def test_failed_renewal_is_attempted_again_soon() -> None:
    schedule = RenewalSchedule()
    schedule.hold("job", due_s=1.0)
    schedule.not_renewed("job", now_s=1.0)
    assert schedule.due(1.1) == []
    assert schedule.due(1.25) == ["job"]


def test_job_that_cannot_be_renewed_is_still_held() -> None:
    schedule = RenewalSchedule()
    schedule.hold("job", due_s=1.0)
    schedule.not_renewable("job")
    assert schedule.due(1e9) == []
    assert schedule.release("job")


def test_late_result_does_not_renew_a_released_job() -> None:
    schedule = RenewalSchedule()
    schedule.hold("job", due_s=1.0)
    assert schedule.release("job")
    assert not schedule.release("job")
    schedule.renewed("job", retry_s=10, now_s=1.0)
    assert len(schedule) == 0


def test_wait_ends_at_the_next_renewal() -> None:
    schedule = RenewalSchedule()
    assert schedule.wait_s(0.0, longest_s=5.0) == 5.0
    schedule.hold("a", due_s=3.0)
    schedule.hold("b", due_s=2.0)
    assert schedule.wait_s(0.0, longest_s=5.0) == pytest.approx(2.0)
    assert schedule.wait_s(9.0, longest_s=5.0) == 0.0


def test_release_all_returns_held_jobs_oldest_first() -> None:
    schedule = RenewalSchedule()
    schedule.hold("a", due_s=3.0)
    schedule.hold("b", due_s=2.0)
    assert schedule.release_all() == ["a", "b"]
    assert len(schedule) == 0
