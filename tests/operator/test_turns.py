"""The order in which clusters are updated."""

from __future__ import annotations

from disque_operator.queue import Key
from disque_operator.turns import Turns

A, B, C = ("ns", "a"), ("ns", "b"), ("other", "a")


def turns(*known: Key) -> Turns:
    return Turns(lambda: known)


def test_first_by_namespace_and_name_is_updated_first() -> None:
    subject = turns(A, B, C)
    for key in (C, B, A):
        subject.report(key, "wanted")
    assert [subject.ahead_of(key) for key in (A, B, C)] == ["", "ns/a", "ns/a"]


def test_cluster_that_is_being_updated_is_ahead_of_all_others() -> None:
    subject = turns(A, B)
    subject.report(A, "wanted")
    subject.report(B, "taken")
    assert subject.ahead_of(A) == "ns/b"
    assert subject.ahead_of(B) == "ns/a"  # its own update continues: `updates` asks only before one starts
    subject.report(B, "none")
    assert subject.ahead_of(A) == ""


def test_no_update_starts_before_every_cluster_was_observed() -> None:
    subject = turns(A, B)
    subject.report(A, "wanted")
    assert subject.ahead_of(A) == "ns/b"
    subject.failed(B)
    assert subject.ahead_of(A) == ""


def test_failed_round_keeps_what_is_known_of_the_cluster() -> None:
    subject = turns(A, B)
    subject.report(B, "taken")
    subject.failed(B)
    assert subject.ahead_of(A) == "ns/b"


def test_deleted_cluster_is_not_waited_for() -> None:
    subject = turns(A)
    subject.report(B, "taken")
    subject.forget(B)
    assert subject.ahead_of(A) == ""


def test_next_holder_of_the_lease_starts_without_memory() -> None:
    subject = turns(A, B)
    subject.report(A, "none")
    subject.report(B, "none")
    subject.reset()
    assert subject.ahead_of(A) == "ns/b"
