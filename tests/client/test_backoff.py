"""Waits grow up to a limit and have jitter."""

from __future__ import annotations

import random

import pytest

from disqued.client import Backoff


def test_waits_double_up_to_the_limit_with_jitter() -> None:
    waits_s = list(Backoff(first_s=1, longest_s=4, attempts=6).waits_s(random.Random(1)))
    for wait_s, nominal_s in zip(waits_s, [1, 2, 4, 4, 4], strict=True):
        assert nominal_s / 2 <= wait_s <= nominal_s


def test_clients_wait_different_times() -> None:
    backoff = Backoff()
    assert list(backoff.waits_s(random.Random(1))) != list(backoff.waits_s(random.Random(2)))


def test_single_attempt_never_waits() -> None:
    assert list(Backoff(attempts=1).waits_s(random.Random(1))) == []


def test_wait_stays_finite_after_many_failures() -> None:
    assert 2.5 <= Backoff().wait_s(10_000, random.Random(1)) <= 5


@pytest.mark.parametrize("options", [{"attempts": 0}, {"first_s": -1}, {"first_s": 9, "longest_s": 1}])
def test_invalid_values_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="back-off needs"):
        Backoff(**options)  # type: ignore[arg-type]
