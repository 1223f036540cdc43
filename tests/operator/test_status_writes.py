"""When a status is written."""

from __future__ import annotations

from typing import Any

import pytest

from disque_operator.apivalues import condition_of
from disque_operator.status_writes import COUNTERS_S, DRAIN_S, failed, is_worth_writing

AT_REST: dict[str, Any] = {
    "phase": "Running",
    "readyReplicas": 3,
    "members": [
        {
            "pod": "c-0",
            "nodeId": "a",
            "jobs": 100,
            "queued": 50,
            "queues": 2,
            "usedMemory": 100_000_000,
            "state": "ready",
        },
        {
            "pod": "c-1",
            "nodeId": "b",
            "jobs": 100,
            "queued": 50,
            "queues": 2,
            "usedMemory": 100_000_000,
            "state": "ready",
        },
    ],
    "jobs": {"registered": 200, "queued": 100},
    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
}


def member(**changes: object) -> dict[str, Any]:
    first, *others = AT_REST["members"]
    return AT_REST | {"members": [first | changes, *others]}


@pytest.mark.parametrize("since_s", [0.0, 1e6])
def test_equal_status_is_not_written(since_s: float) -> None:
    assert not is_worth_writing(AT_REST, dict(AT_REST), since_s)


@pytest.mark.parametrize(
    "new",
    [
        AT_REST | {"phase": "Draining"},
        AT_REST | {"readyReplicas": 2},
        member(state="leaving"),
        member(nodeId="c"),
        AT_REST | {"members": AT_REST["members"][:1]},
        AT_REST | {"conditions": []},
        AT_REST | {"drain": {"pod": "c-1", "jobsLeft": 5}},
    ],
)
def test_changed_text_is_written_at_once(new: dict[str, Any]) -> None:
    assert is_worth_writing(AT_REST, new, 0.0)


def test_changed_counters_are_written_periodically() -> None:
    new = member(jobs=101)
    assert not is_worth_writing(AT_REST, new, COUNTERS_S - 1)
    assert is_worth_writing(AT_REST, new, COUNTERS_S)


@pytest.mark.parametrize(("used", "is_written"), [(105, False), (95, False), (120, True), (10, True)])
def test_memory_is_written_only_after_a_large_change(used: int, is_written: bool) -> None:
    assert is_worth_writing(AT_REST, member(usedMemory=used * 1_000_000), 1e6) == is_written


def test_small_changes_of_memory_are_not_written() -> None:
    assert not is_worth_writing(member(usedMemory=10_000), member(usedMemory=500_000), 1e6)


def test_drain_progress_is_written() -> None:
    before = AT_REST | {"drain": {"pod": "c-1", "nodeId": "b", "jobsLeft": 500, "rate": 10.0, "secondsElapsed": 1.0}}
    after = AT_REST | {"drain": {"pod": "c-1", "nodeId": "b", "jobsLeft": 480, "rate": 10.0, "secondsElapsed": 3.0}}
    assert not is_worth_writing(before, after, DRAIN_S - 0.1)
    assert is_worth_writing(before, after, DRAIN_S)
    stands = AT_REST | {"drain": before["drain"] | {"secondsElapsed": 900.0}}
    assert not is_worth_writing(before, stands, 1e6)


def test_failure_replaces_success_and_keeps_its_transition_time() -> None:
    success = {"type": "ReconcileSuccess", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    well = AT_REST | {"conditions": [*AT_REST["conditions"], success]}
    first = failed(well, well, "Forbidden", "pods is forbidden", 7, "2026-01-02T00:00:00Z")
    assert len(first["conditions"]) == 2
    assert condition_of(first, "ReconcileSuccess") == {
        "type": "ReconcileSuccess",
        "status": "False",
        "reason": "Forbidden",
        "message": "pods is forbidden",
        "lastTransitionTime": "2026-01-02T00:00:00Z",
        "observedGeneration": 7,
    }
    second = failed(well, first, "Forbidden", "pods is forbidden", 7, "2026-01-03T00:00:00Z")
    assert not is_worth_writing(first, second, 1e6)
