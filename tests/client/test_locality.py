"""When a consumer moves to the node that its jobs come from."""

from __future__ import annotations

import pytest

from disqued.client.locality import REFUSED_S, WINDOW_JOBS, WINDOW_S, Locality
from disqued.client.values import Job, JobId

A, B, C = "aaaaaaaa", "bbbbbbbb", "cccccccc"
ME = A + "0" * 32


def jobs(**created: int) -> list[Job]:
    """Jobs by the first letter of their creator, in a window that is as long as it must be."""
    return [
        Job("q", JobId(f"D-{letter * 8}-{number:024}-05a1"), b"")
        for letter, count in created.items()
        for number in range(count)
    ]


def decide(locality: Locality, now_s: float = 0.0, node_id: str | None = ME, **created: int) -> str | None:
    """The decision at the end of a window that begins at `now_s` and in which these jobs arrive."""
    arrived = jobs(**created)
    assert locality.fetched(arrived[:1], node_id, now_s) is None
    return locality.fetched(arrived[1:], node_id, now_s + WINDOW_S)


@pytest.mark.parametrize(
    ("created", "target"),
    [
        ({"a": 100}, None),
        ({"b": 100}, B),
        ({"b": 75, "a": 25}, B),
        ({"b": 74, "a": 26}, None),
        ({"b": 50, "c": 50}, None),
        ({"b": 90, "c": 60}, None),
        ({"b": 20, "c": 130}, C),
    ],
    ids=["own jobs", "one other", "just enough", "not enough", "two others", "most of several", "nearly all"],
)
def test_consumer_moves_to_the_creator_of_most_jobs(created: dict[str, int], target: str | None) -> None:
    locality = Locality()
    assert locality.fetched(jobs(**created), ME, 0.0) is None
    assert locality.fetched([], ME, WINDOW_S) == target


def test_few_jobs_move_nobody_however_long_they_take() -> None:
    locality = Locality()
    assert decide(locality, b=WINDOW_JOBS - 1) is None
    assert locality.fetched(jobs(b=1), ME, 3 * WINDOW_S) == B, "the window is open until it has enough jobs"


def test_many_jobs_move_nobody_before_the_window_ends() -> None:
    locality = Locality()
    assert locality.fetched(jobs(b=10 * WINDOW_JOBS), ME, 0.0) is None
    assert locality.fetched(jobs(b=1), ME, WINDOW_S - 0.1) is None
    assert locality.fetched([], ME, WINDOW_S) == B


def test_each_window_counts_its_own_jobs() -> None:
    locality = Locality()
    assert decide(locality, a=1000) is None
    assert decide(locality, now_s=WINDOW_S, b=100) == B


def test_consumer_that_moved_stays_while_sources_are_mixed() -> None:
    locality = Locality()
    assert decide(locality, b=100) == B
    for number in range(1, 20):
        assert decide(locality, number * WINDOW_S, B + "0" * 32, a=60, b=40) is None


def test_consumer_that_does_not_know_its_node_stays() -> None:
    assert decide(Locality(), node_id=None, b=1000) is None


def test_node_that_could_not_be_reached_is_left_alone_for_a_while() -> None:
    locality = Locality()
    assert decide(locality, b=100) == B
    locality.refused(B, WINDOW_S)
    assert decide(locality, WINDOW_S, b=100) is None
    assert decide(locality, 2 * WINDOW_S, c=100) == C, "another node"
    assert decide(locality, WINDOW_S + REFUSED_S, b=100) == B
