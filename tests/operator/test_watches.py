"""What watches reported, and the detection of watches that report nothing."""

from __future__ import annotations

from typing import Any

import pytest

from disque_operator import names
from disque_operator.observe import LISTED
from disque_operator.queue import Key
from disque_operator.watches import WatchTracker

EVERY_KIND = pytest.mark.parametrize("kind", [names.KIND, *names.DECLARED, *LISTED])


class Recorder:
    """A tracker, with a record of its calls."""

    def __init__(self) -> None:
        self.stale: list[Key] = []
        self.subject = WatchTracker(self.stale.append)

    def reported(self, kind: str, version: int, name: str = "c", *, is_gone: bool = False) -> None:
        self.subject.reported(kind, item(version, name), is_gone=is_gone)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def item(version: int, name: str = "c") -> dict[str, Any]:
    labels = {names.CLUSTER_LABEL: "c"}
    known = {"namespace": "ns", "name": name, "uid": f"uid-{name}", "labels": labels}
    return {"metadata": known | {"resourceVersion": str(version)}, "spec": {"clusterRef": {"name": "c"}}}


@EVERY_KIND
def test_listed_and_reported_object_is_not_read_again(recorder: Recorder, kind: str) -> None:
    recorder.reported(kind, 5)
    for _ in range(5):
        recorder.subject.listed(kind, [item(5)])
    assert recorder.stale == []
    assert not recorder.subject.missed


@EVERY_KIND
def test_unreported_object_is_read_and_fails_the_probe_after_three_lists(recorder: Recorder, kind: str) -> None:
    said = []
    for _ in range(3):
        recorder.subject.listed(kind, [item(5)])
        said.append(recorder.subject.missed)
    assert recorder.stale == [("ns", "c")] * 3
    assert said == ["", "", f"no watch reported {kind} ns/c"], "the watch may be late"


@EVERY_KIND
def test_deaf_watch_is_found_although_the_object_changes_between_all_lists(recorder: Recorder, kind: str) -> None:
    recorder.reported(kind, 1)
    for version in (5, 9, 14):
        assert not recorder.subject.missed
        recorder.subject.listed(kind, [item(version)])
    assert recorder.subject.missed == f"no watch reported {kind} ns/c"


@EVERY_KIND
def test_busy_object_with_a_working_watch_is_no_false_alarm(recorder: Recorder, kind: str) -> None:
    for version in range(5, 500, 5):
        recorder.subject.listed(kind, [item(version)])
        assert not recorder.subject.missed
        recorder.reported(kind, version)
        recorder.reported(kind, version + 1)


def test_late_watch_is_no_false_alarm(recorder: Recorder) -> None:
    for _ in range(20):
        recorder.subject.listed("Pod", [item(5)])
        recorder.subject.listed("Pod", [item(6)])
        recorder.reported("Pod", 6)
        recorder.subject.listed("Pod", [item(6)])
        assert not recorder.subject.missed


def test_list_from_before_a_change_is_no_false_alarm(recorder: Recorder) -> None:
    for version in range(1, 50):
        recorder.reported("Pod", version)
        recorder.subject.listed("Pod", [item(version - 1)])
        recorder.subject.listed("Pod", [item(version)])
        assert not recorder.subject.missed


def test_probe_recovers_when_the_watch_reports_again(recorder: Recorder) -> None:
    for _ in range(3):
        recorder.subject.listed("Pod", [item(5)])
    recorder.reported("Pod", 5)
    assert not recorder.subject.missed


def test_lists_of_one_kind_say_nothing_about_others(recorder: Recorder) -> None:
    recorder.reported("Pod", 5)
    for _ in range(5):
        recorder.subject.listed("Secret", [])
    assert not recorder.subject.is_gone(item(5))
    assert recorder.stale == []


def test_deletion_that_no_watch_reported_is_found_by_two_lists(recorder: Recorder) -> None:
    recorder.reported("Pod", 5)
    recorder.subject.listed("Pod", [])
    assert not recorder.subject.is_gone(item(5)), "it may have been created after the list"
    recorder.subject.listed("Pod", [])
    assert recorder.subject.is_gone(item(5))
    assert recorder.stale == [("ns", "c")] * 2
    recorder.subject.listed("Pod", [])
    assert recorder.stale == [("ns", "c")] * 2
    assert not recorder.subject.missed


def test_object_that_is_created_during_a_list_is_not_gone(recorder: Recorder) -> None:
    recorder.reported("Pod", 5)
    recorder.subject.listed("Pod", [])
    recorder.subject.listed("Pod", [item(5)])
    recorder.subject.listed("Pod", [])
    assert not recorder.subject.is_gone(item(5))


def test_reported_deletion_is_forgotten(recorder: Recorder) -> None:
    recorder.reported("Pod", 5)
    recorder.reported("Pod", 6, is_gone=True)
    recorder.subject.listed("Pod", [])
    assert recorder.stale == []
    assert not recorder.subject._objects
    assert not recorder.subject._gone
