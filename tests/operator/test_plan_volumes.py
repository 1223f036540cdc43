"""The size of volumes: they grow if the StorageClass can expand them, and a size that cannot be can be taken back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from disque_operator.actions import Apply
from disque_operator.spec import Storage
from support.kubeworld.scenario import Scenario, a_spec, check_settled
from support.kubeworld.values import at_rest, changed, condition, decided, planned, reported, seen, volumes


def a_cluster() -> Scenario:
    scenario = Scenario(a_spec(), load=False)
    scenario.settle()
    return scenario


def sizes(scenario: Scenario) -> set[tuple[str, str]]:
    """Return the requests of the claims, and what their volumes have."""
    return {(volume.size, volume.capacity) for volume in scenario.world.observe().volumes}


def resizes(scenario: Scenario) -> list[str]:
    manifests = [one.manifest for one in scenario.acted if isinstance(one, Apply)]
    return [one["metadata"]["name"] for one in manifests if one["kind"] == "PersistentVolumeClaim"]


def test_volumes_grow_and_the_status_says_when_they_have() -> None:
    scenario = a_cluster()
    scenario.world.edit(storage=Storage(size="4Gi"))
    scenario.run(2)
    assert condition(scenario.world.status, "Progressing") == ("True", "Resizing")
    assert condition(scenario.world.status, "Ready") == ("False", "ChangePending")
    scenario.settle()
    check_settled(scenario)
    assert sizes(scenario) == {("4Gi", "4Gi")}


def test_new_members_get_the_size_of_the_spec() -> None:
    scenario = a_cluster()
    scenario.world.edit(storage=Storage(size="4Gi"))
    scenario.settle()
    scenario.world.edit(replicas=4)
    scenario.settle()
    check_settled(scenario)
    assert sizes(scenario) == {("4Gi", "4Gi")}


def test_class_that_cannot_expand_is_reported_and_nothing_is_tried() -> None:
    scenario = a_cluster()
    scenario.world.storage.expands = False
    scenario.world.edit(storage=Storage(size="4Gi"))
    scenario.run(60)
    assert condition(scenario.world.status, "Degraded") == ("True", "VolumeNotExpandable")
    assert "set spec.storage.size back to 2Gi" in scenario.world.status["message"]
    assert resizes(scenario) == []
    scenario.world.edit(replicas=4)
    scenario.until(lambda: scenario.world.status["readyReplicas"] == 4, 120)
    scenario.world.edit(storage=Storage(size="2Gi"))
    scenario.settle()
    check_settled(scenario)


def test_former_size_can_be_set_again_without_the_right_to_read_classes() -> None:
    scenario = a_cluster()
    scenario.world.storage.expands, scenario.world.storage.reads_classes = False, False
    scenario.world.edit(storage=Storage(size="4Gi"))
    scenario.run(60)
    assert any("does not support resize" in line for line in scenario.log)
    assert sizes(scenario) == {("2Gi", "2Gi")}
    scenario.world.edit(storage=Storage(size="2Gi"))
    scenario.settle()
    check_settled(scenario)


def test_failed_expansion_can_be_ended_with_a_smaller_size() -> None:
    scenario = a_cluster()
    scenario.world.storage.largest = "8Gi"
    scenario.world.edit(storage=Storage(size="100Gi"))
    scenario.until(lambda: condition(scenario.world.status, "Degraded") == ("True", "ResizeFailed"), 60)
    assert "a smaller size above 2Gi" in scenario.world.status["message"]
    scenario.world.edit(storage=Storage(size="8Gi"))
    scenario.settle()
    check_settled(scenario)
    assert sizes(scenario) == {("8Gi", "8Gi")}


def test_volumes_do_not_shrink_and_the_status_says_so() -> None:
    scenario = a_cluster()
    scenario.world.edit(storage=Storage(size="1Gi"))
    scenario.run(60)
    assert condition(scenario.world.status, "Degraded") == ("True", "VolumeNotShrinkable")
    assert "set spec.storage.size to 2Gi" in scenario.world.status["message"]
    assert resizes(scenario) == []
    scenario.world.edit(storage=Storage(size="2Gi"))
    scenario.settle()
    check_settled(scenario)


STATES = {
    "": ("True", "Resizing"),
    "Resizing": ("True", "Resizing"),
    "ControllerResizeInProgress": ("True", "Resizing"),
    "NodeResizePending": ("True", "FileSystemResizePending"),
    "FileSystemResizePending": ("True", "FileSystemResizePending"),
}


@pytest.mark.parametrize("state", STATES)
def test_expansion_in_progress_is_reported(state: str) -> None:
    view = volumes(changed(at_rest(), storage=Storage(size="4Gi")), 1, size="4Gi", capacity="2Gi", resize=state)
    others = tuple(
        replace(one, size="4Gi", capacity="4Gi") if one.ordinal != 1 else one for one in view.observed.volumes
    )
    view = seen(view, volumes=others)
    assert decided(view) == []
    assert reported(view, "Progressing") == STATES[state]
    assert reported(view, "Degraded") == ("False", "Healthy")


@pytest.mark.parametrize("state", ["ControllerResizeInfeasible", "NodeResizeFailed", "NodeResizeError"])
def test_failed_expansion_is_reported_with_its_reason(state: str) -> None:
    view = volumes(at_rest(), 1, size="2Gi", capacity="1Gi", resize=state, resize_text="no space in the pool")
    assert reported(view, "Degraded") == ("True", "ResizeFailed")
    assert f"data-mail-1 cannot be expanded ({state}: no space in the pool)" in planned(view).status["message"]


def test_volume_without_a_class_is_not_expanded() -> None:
    view = changed(volumes(at_rest(1), 0, class_name=""), storage=Storage(size="4Gi"))
    assert decided(view) == []
    assert reported(view, "Degraded") == ("True", "VolumeNotExpandable")
