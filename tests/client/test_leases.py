"""When a job in hand is reported as worked on."""

from __future__ import annotations

import pytest

from disqued.client.leases import Leases


def test_a_job_is_renewed_soon_after_the_fetch_and_then_at_half_of_its_retry_time() -> None:
    leases = Leases()
    leases.hold("job", due_s=10.25)
    assert leases.due(10.0) == []
    assert leases.due(10.25) == ["job"]
    leases.renewed("job", retry_s=20, now_s=10.25)
    assert leases.due(20.2) == []
    assert leases.due(22.3) == ["job"]


def test_an_at_most_once_job_is_renewed_once_only() -> None:
    leases = Leases()
    leases.hold("job", due_s=1.0)
    leases.renewed("job", retry_s=0, now_s=1.0)
    assert leases.due(1e9) == []
    assert len(leases) == 1


def test_a_renewal_that_was_not_delivered_is_tried_again_soon() -> None:
    leases = Leases()
    leases.hold("job", due_s=1.0)
    leases.not_renewed("job", now_s=1.0)
    assert leases.due(1.1) == []
    assert leases.due(1.25) == ["job"]


def test_what_can_not_be_renewed_is_left_alone_but_still_in_hand() -> None:
    leases = Leases()
    leases.hold("job", due_s=1.0)
    leases.not_renewable("job")
    assert leases.due(1e9) == []
    assert leases.release("job")


def test_a_settled_job_is_not_renewed_even_if_its_answer_comes_late() -> None:
    leases = Leases()
    leases.hold("job", due_s=1.0)
    assert leases.release("job")
    assert not leases.release("job")
    leases.renewed("job", retry_s=10, now_s=1.0)
    assert len(leases) == 0


def test_the_wait_ends_at_the_next_renewal() -> None:
    leases = Leases()
    assert leases.wait_s(0.0, longest_s=5.0) == 5.0
    leases.hold("a", due_s=3.0)
    leases.hold("b", due_s=2.0)
    assert leases.wait_s(0.0, longest_s=5.0) == pytest.approx(2.0)
    assert leases.wait_s(9.0, longest_s=5.0) == 0.0


def test_everything_in_hand_can_be_given_back_oldest_first() -> None:
    leases = Leases()
    leases.hold("a", due_s=3.0)
    leases.hold("b", due_s=2.0)
    assert leases.release_all() == ["a", "b"]
    assert len(leases) == 0
