"""Tests of the accounts that decide whether jobs were lost or came out of order; they need no Kubernetes."""

from __future__ import annotations

import re

import pytest

from e2e.support.account import Account
from e2e.support.orderedload import OrderedAccount

ONE = "D-5ca1ab1e-wyYYkRMaIpx0MjZLTUHAcFdS-05a1"
OTHER = "D-5ca1ab1e-wyYYkRMaIpx0MjZLTUHAcFdT-05a1"
ONCE = "D-5ca1ab1e-wyYYkRMaIpx0MjZLTUHAcFdU-05a0"

SOUND = (f"add plain 3 p.0 {ONE}", f"got {ONE} p.0", f"add once 900 p.1 {ONCE}", f"got {ONCE} p.1", "end")


def account(*lines: str) -> Account:
    read = Account()
    read.read(lines)
    return read


def test_check_accepts_jobs_that_were_added_and_delivered() -> None:
    sound = account(*SOUND)
    sound.check(at_least=2)
    assert (sound.duplicates, sound.repeated, sound.slowest_ms, sound.percentile_ms(0.4)) == (0, 0, 900, 3)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((f"add plain 1 p.2 {OTHER}",), "lost ['p.2']"),
        ((f"add once 1 p.2 {OTHER}",), f"lost {{'p.2': '{OTHER}'}}"),
        ((f"got {ONCE} p.1",), "twice ['p.1']"),
        ((f"got {OTHER} p.9",), "unexpected ['p.9']"),
        (("unknown p.2 plain NotReplicated NOREPL not enough",), "NOREPL"),
        (("failed get ConnectionFailed no node",), "no node"),
    ],
)
def test_check_reports_lost_repeated_and_unexpected_jobs(lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(message)):
        account(*SOUND, *lines).check(at_least=2)


def test_job_with_an_unknown_result_may_be_delivered_or_not() -> None:
    lines = ("unknown p.2 plain ConnectionLost gone", f"got {OTHER} p.2", "unknown p.3 plain ConnectionLost gone")
    account(*SOUND, *lines).check(at_least=2, calls_may_fail=True)


def test_repeated_deliveries_and_repeated_jobs_are_counted_separately() -> None:
    twice = account(*SOUND, f"got {ONE} p.0", f"got {OTHER} p.0")
    twice.check(at_least=2)
    assert (twice.duplicates, twice.repeated) == (1, 1)


FIRST = (f"add ordered 2 p.0.0 {ONE}", f"add ordered 2 p.0.1 {OTHER}", f"got {ONE} p.0.0")


def in_order(*lines: str) -> OrderedAccount:
    read = OrderedAccount()
    read.read((*FIRST, *lines))
    return read


def test_ordered_check_accepts_a_job_that_comes_again_before_later_ones() -> None:
    in_order(f"got {ONE} p.0.0", f"acked {ONE}", f"got {OTHER} p.0.1", f"acked {OTHER}").check_ordered(at_least=2)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((f"got {OTHER} p.0.1", f"got {ONE} p.0.0"), "out of order ['p.0.0 after 1']"),
        ((f"acked {ONE}", f"got {ONE} p.0.0", f"got {OTHER} p.0.1"), f"after their acknowledgement ['{ONE}']"),
        ((f"got {ONCE} p.0.0", f"got {OTHER} p.0.1"), "some keys have two jobs"),
        ((f"acked {ONE}",), "lost ['p.0.1']"),
    ],
)
def test_ordered_check_reports_lost_doubled_returned_and_misplaced_jobs(lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(message)):
        in_order(*lines).check_ordered(at_least=2)
