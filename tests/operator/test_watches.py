"""What watches tell, and how it is noticed that they tell nothing any more."""

from __future__ import annotations

from typing import Any

import pytest

from disque_operator.queue import Key
from disque_operator.watches import WatchTracker


class Ears:
    """A subject, and what it did."""

    def __init__(self) -> None:
        self.woken: list[Key] = []
        self.changed: list[Key] = []
        self.subject = WatchTracker(self.woken.append, self.changed.append)


@pytest.fixture
def ears() -> Ears:
    return Ears()


def cluster(version: int, generation: int = 1, name: str = "c", **metadata: Any) -> dict[str, Any]:
    known = {"namespace": "ns", "name": name, "uid": f"uid-{name}", "generation": generation}
    return {"metadata": known | {"resourceVersion": str(version)} | metadata}


def test_a_new_cluster_is_looked_at(ears: Ears) -> None:
    ears.subject.cluster(cluster(1), is_gone=False)
    assert (ears.woken, ears.changed) == ([("ns", "c")], [("ns", "c")])


def test_our_own_write_of_its_status_wakes_nobody(ears: Ears) -> None:
    ears.subject.cluster(cluster(1), is_gone=False)
    ears.subject.cluster(cluster(2), is_gone=False)
    assert ears.woken == [("ns", "c")]
    assert len(ears.changed) == 2, "but the next look is a fresh one"


@pytest.mark.parametrize(
    "changed",
    [
        cluster(2, generation=2),
        cluster(2, annotations={"disque.dev/restart-at": "now"}),
        cluster(2, deletionTimestamp="t"),
    ],
)
def test_what_people_ask_for_wakes(ears: Ears, changed: dict[str, Any]) -> None:
    ears.subject.cluster(cluster(1), is_gone=False)
    ears.subject.cluster(changed, is_gone=False)
    assert len(ears.woken) == 2


def test_its_end_wakes(ears: Ears) -> None:
    ears.subject.cluster(cluster(1), is_gone=False)
    ears.subject.cluster(cluster(1), is_gone=True)
    assert len(ears.woken) == 2


def test_an_object_wakes_the_cluster_of_its_label(ears: Ears) -> None:
    labels = {"disque.dev/cluster": "c"}
    ears.subject.child({"metadata": {"namespace": "ns", "name": "c-0", "labels": labels}})
    ears.subject.child({"metadata": {"namespace": "ns", "name": "stranger"}})
    assert ears.woken == [("ns", "c")]


def test_what_is_listed_and_was_told_is_no_news(ears: Ears) -> None:
    ears.subject.cluster(cluster(5), is_gone=False)
    ears.subject.listed([cluster(5)])
    ears.subject.listed([cluster(5)])
    assert ears.woken == [("ns", "c")]
    assert not ears.subject.missed


def test_what_was_not_told_is_looked_at_and_by_the_third_list_the_watch_is_deaf(ears: Ears) -> None:
    said = []
    for _ in range(3):
        ears.subject.listed([cluster(5)])
        said.append(ears.subject.missed)
    assert ears.woken == [("ns", "c")] * 3
    assert said == ["", "", "no watch reported DisqueCluster ns/c"], "at first the watch may be late"


def test_a_watch_that_is_late_is_not_deaf(ears: Ears) -> None:
    ears.subject.listed([cluster(5)])
    ears.subject.cluster(cluster(5), is_gone=False)
    ears.subject.listed([cluster(5)])
    assert not ears.subject.missed


def test_a_cluster_that_changes_all_the_time_makes_no_watch_deaf(ears: Ears) -> None:
    for version in range(5, 50, 5):
        ears.subject.listed([cluster(version)])
        ears.subject.cluster(cluster(version + 1), is_gone=False)
        assert not ears.subject.missed


def test_a_watch_that_tells_again_is_not_deaf_any_more(ears: Ears) -> None:
    for _ in range(3):
        ears.subject.listed([cluster(5)])
    ears.subject.cluster(cluster(5), is_gone=False)
    assert not ears.subject.missed


def test_clusters_that_are_gone_are_forgotten(ears: Ears) -> None:
    ears.subject.cluster(cluster(5), is_gone=False)
    ears.subject.listed([])
    ears.subject.listed([cluster(5, name="d")])
    ears.subject.listed([])
    assert not ears.subject._seen
    assert not ears.subject._asked
    assert not ears.subject._unreported
