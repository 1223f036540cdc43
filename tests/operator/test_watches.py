"""Watch events, and the detection of watches that report nothing."""

from __future__ import annotations

from typing import Any

import pytest

from disque_operator.queue import Key
from disque_operator.watches import WatchTracker


class Recorder:
    """A tracker, with records of its calls."""

    def __init__(self) -> None:
        self.woken: list[Key] = []
        self.changed: list[Key] = []
        self.subject = WatchTracker(self.woken.append, self.changed.append)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def cluster(version: int, generation: int = 1, name: str = "c", **metadata: Any) -> dict[str, Any]:
    known = {"namespace": "ns", "name": name, "uid": f"uid-{name}", "generation": generation}
    return {"metadata": known | {"resourceVersion": str(version)} | metadata}


def test_new_cluster_wakes_the_queue(recorder: Recorder) -> None:
    recorder.subject.cluster(cluster(1), is_gone=False)
    assert (recorder.woken, recorder.changed) == ([("ns", "c")], [("ns", "c")])


def test_status_write_does_not_wake_the_queue(recorder: Recorder) -> None:
    recorder.subject.cluster(cluster(1), is_gone=False)
    recorder.subject.cluster(cluster(2), is_gone=False)
    assert recorder.woken == [("ns", "c")]
    assert len(recorder.changed) == 2, "but the next round reads objects again"


@pytest.mark.parametrize(
    "changed",
    [
        cluster(2, generation=2),
        cluster(2, annotations={"disque.dev/restart-at": "now"}),
        cluster(2, deletionTimestamp="t"),
    ],
)
def test_change_by_a_user_wakes_the_queue(recorder: Recorder, changed: dict[str, Any]) -> None:
    recorder.subject.cluster(cluster(1), is_gone=False)
    recorder.subject.cluster(changed, is_gone=False)
    assert len(recorder.woken) == 2


def test_deletion_wakes_the_queue(recorder: Recorder) -> None:
    recorder.subject.cluster(cluster(1), is_gone=False)
    recorder.subject.cluster(cluster(1), is_gone=True)
    assert len(recorder.woken) == 2


def test_object_wakes_the_cluster_of_its_label(recorder: Recorder) -> None:
    labels = {"disque.dev/cluster": "c"}
    recorder.subject.child({"metadata": {"namespace": "ns", "name": "c-0", "labels": labels}})
    recorder.subject.child({"metadata": {"namespace": "ns", "name": "other"}})
    assert recorder.woken == [("ns", "c")]


def test_listed_and_reported_cluster_does_not_wake_the_queue(recorder: Recorder) -> None:
    recorder.subject.cluster(cluster(5), is_gone=False)
    recorder.subject.listed([cluster(5)])
    recorder.subject.listed([cluster(5)])
    assert recorder.woken == [("ns", "c")]
    assert not recorder.subject.missed


def test_unreported_cluster_wakes_the_queue_and_fails_the_probe_after_three_lists(recorder: Recorder) -> None:
    said = []
    for _ in range(3):
        recorder.subject.listed([cluster(5)])
        said.append(recorder.subject.missed)
    assert recorder.woken == [("ns", "c")] * 3
    assert said == ["", "", "no watch reported DisqueCluster ns/c"], "the watch may be late"


def test_late_watch_does_not_fail_the_probe(recorder: Recorder) -> None:
    recorder.subject.listed([cluster(5)])
    recorder.subject.cluster(cluster(5), is_gone=False)
    recorder.subject.listed([cluster(5)])
    assert not recorder.subject.missed


def test_frequent_changes_do_not_fail_the_probe(recorder: Recorder) -> None:
    for version in range(5, 50, 5):
        recorder.subject.listed([cluster(version)])
        recorder.subject.cluster(cluster(version + 1), is_gone=False)
        assert not recorder.subject.missed


def test_probe_recovers_when_the_watch_reports_again(recorder: Recorder) -> None:
    for _ in range(3):
        recorder.subject.listed([cluster(5)])
    recorder.subject.cluster(cluster(5), is_gone=False)
    assert not recorder.subject.missed


def test_deleted_clusters_are_forgotten(recorder: Recorder) -> None:
    recorder.subject.cluster(cluster(5), is_gone=False)
    recorder.subject.listed([])
    recorder.subject.listed([cluster(5, name="d")])
    recorder.subject.listed([])
    assert not recorder.subject._seen
    assert not recorder.subject._user_state
    assert not recorder.subject._unreported
