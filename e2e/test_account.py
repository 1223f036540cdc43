"""The account that decides whether jobs were lost is itself held to account; no Kubernetes is needed."""

from __future__ import annotations

import re

import pytest

from e2e.support.account import Account

ONE = "D-5ca1ab1e-wyYYkRMaIpx0MjZLTUHAcFdS-05a1"
OTHER = "D-5ca1ab1e-wyYYkRMaIpx0MjZLTUHAcFdT-05a1"
ONCE = "D-5ca1ab1e-wyYYkRMaIpx0MjZLTUHAcFdU-05a0"

SOUND = (f"add plain 3 p.0 {ONE}", f"got {ONE} p.0", f"add once 900 p.1 {ONCE}", f"got {ONCE} p.1", "end")


def account(*lines: str) -> Account:
    read = Account()
    read.read(lines)
    return read


def test_what_was_added_and_delivered_adds_up() -> None:
    sound = account(*SOUND)
    sound.check(at_least=2)
    assert (sound.duplicates, sound.repeated, sound.slowest_ms, sound.percentile_ms(0.4)) == (0, 0, 900, 3)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ((f"add plain 1 p.2 {OTHER}",), "lost ['p.2']"),
        ((f"add once 1 p.2 {OTHER}",), f"lost {{'p.2': '{OTHER}'}}"),
        ((f"got {ONCE} p.1",), "twice ['p.1']"),
        ((f"got {OTHER} p.9",), "from nowhere ['p.9']"),
        (("unknown p.2 plain NotReplicated NOREPL not enough",), "NOREPL"),
        (("failed get ConnectionFailed no node",), "no node"),
    ],
)
def test_what_does_not_add_up_is_said(lines: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(complaint)):
        account(*SOUND, *lines).check(at_least=2)


def test_a_job_that_nobody_was_answered_for_may_come_or_not() -> None:
    lines = ("unknown p.2 plain ConnectionLost gone", f"got {OTHER} p.2", "unknown p.3 plain ConnectionLost gone")
    account(*SOUND, *lines).check(at_least=2, calls_may_fail=True)


def test_a_second_delivery_and_a_second_job_of_a_key_are_counted_apart() -> None:
    twice = account(*SOUND, f"got {ONE} p.0", f"got {OTHER} p.0")
    twice.check(at_least=2)
    assert (twice.duplicates, twice.repeated) == (1, 1)
