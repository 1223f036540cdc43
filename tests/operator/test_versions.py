"""Versions of brokers: refused jumps and downgrades, and the way back within the rules."""

from __future__ import annotations

import pytest

from disque_operator.actions import DeletePod
from disque_operator.apivalues import condition_of
from disque_operator.versions import refusal, release, tag_of
from disqued import __version__
from disqued.releases import FILE_FORMAT, FILE_FORMATS
from support.kubeworld.fleet import Fleet
from support.kubeworld.scenario import Scenario, a_spec, check_settled


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("disqued:1.2.3", "1.2.3"),
        ("registry.example:5000/team/disqued:v1.2.3-alpine", "v1.2.3-alpine"),
        ("registry.example:5000/disqued", ""),
        ("disqued@sha256:0123", ""),
        ("disqued:1.2.3@sha256:0123", "1.2.3"),
    ],
)
def test_tag(image: str, tag: str) -> None:
    assert tag_of(image) == tag


@pytest.mark.parametrize(
    ("version", "found"),
    [("1.2.3", (1, 2)), ("v1.2", (1, 2)), ("1.10.0rc1", (1, 10)), ("1.0-rc1", (1, 0)), ("latest", None), ("1", None)],
)
def test_release(version: str, found: tuple[int, int] | None) -> None:
    assert release(version) == found


@pytest.mark.parametrize(
    ("running", "target", "why"),
    [
        (["1.2.3"], "1.2.9", ""),
        (["1.2.3"], "1.2.0", ""),
        (["1.2.3"], "1.3.0", ""),
        (["1.9.3"], "2.0.1", ""),
        (["2.0.1"], "1.9.3", ""),
        (["1.2.3"], "1.1.0", ""),
        (["1.2.3"], "1.4.0", "members run 1.2, and 1.4 skips releases: upgrade one release at a time, next to 1.3"),
        (["1.2.3"], "2.1.0", "skips releases"),
        (["1.2.3"], "1.0.0", "members run 1.2, and 1.0 is more than one release back"),
        (["2.1.0"], "1.9.0", "more than one release back"),
        (["1.2.3", "1.3.0"], "1.3.0", ""),
        (["1.2.3", "1.3.0"], "1.2.3", ""),
        (["1.2.3", "1.3.0"], "1.4.0", "members run 1.2"),
        (["1.2.3", "1.5.0"], "1.2.0", ""),  # the way back after a tag that lied
        (["1.2.3"], "latest", ""),
        (["nightly"], "1.4.0", ""),
        ([], "1.4.0", ""),
    ],
)
def test_change_of_versions(running: list[str], target: str, why: str) -> None:
    found = refusal(running, target, 1)
    assert found == why or (why and why in found)


def test_release_that_cannot_read_the_files_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILE_FORMATS, (1, 3), 3)
    assert refusal(["1.3.0"], "1.2.0", 3) == "release 1.2 cannot read the files of the brokers, which have format 3"
    assert refusal(["1.3.0"], "1.2.0", 2) == ""  # the brokers did not write their files again yet
    assert refusal(["1.3.0"], "1.4.0", 3) == ""


def test_this_release_reads_what_it_writes() -> None:
    assert refusal([__version__], __version__, FILE_FORMAT) == ""


# --- clusters ---------------------------------------------------------------------------------------------------------


def a_cluster(image: str = "disque:1.2.0") -> Scenario:
    scenario = Scenario(a_spec(image=image), load=False)
    scenario.settle()
    for _ in range(10):
        assert scenario.add(2)
    return scenario


def degraded(scenario: Scenario) -> str:
    found = condition_of(scenario.world.status, "Degraded")
    return f"{found['reason']}: {found['message']}"


def images(scenario: Scenario) -> set[str]:
    return {pod.image for pod in scenario.world.pods.values()}


def replaced(scenario: Scenario) -> list[str]:
    return [action.name for action in scenario.acted if isinstance(action, DeletePod)]


def test_jump_is_refused_before_any_pod_is_replaced_and_names_the_next_step() -> None:
    scenario = a_cluster()
    scenario.world.edit(image="disque:1.5.0")
    scenario.settle()
    assert (images(scenario), replaced(scenario)) == ({"disque:1.2.0"}, [])
    assert degraded(scenario).startswith("VersionRefused: image disque:1.5.0 is not used: members run 1.2, and 1.5")
    assert condition_of(scenario.world.status, "Updated")["reason"] == "VersionRefused"
    scenario.world.edit(image="disque:1.3.0")
    scenario.settle()
    check_settled(scenario)


def test_downgrade_over_several_releases_is_refused() -> None:
    scenario = a_cluster("disque:1.4.0")
    scenario.world.edit(image="disque:1.2.0")
    scenario.settle()
    assert (images(scenario), replaced(scenario)) == ({"disque:1.4.0"}, [])
    assert "more than one release back" in degraded(scenario)


def test_other_changes_of_the_spec_are_applied_while_an_image_is_refused() -> None:
    scenario = a_cluster()
    scenario.world.edit(image="disque:1.5.0", config={"tcp-backlog": "100"}, replicas=4)
    scenario.settle()
    assert replaced(scenario) == ["mail-2", "mail-1", "mail-0"]
    assert (images(scenario), len(scenario.world.pods)) == ({"disque:1.2.0"}, 4)


def test_rollback_to_the_former_image_in_the_middle_of_an_upgrade() -> None:
    scenario = a_cluster()
    scenario.world.edit(image="disque:1.3.0")
    scenario.until(lambda: len(images(scenario)) == 2)
    scenario.world.edit(image=scenario.world.status["formerImage"])
    scenario.settle()
    check_settled(scenario)
    assert images(scenario) == {"disque:1.2.0"}
    assert scenario.world.lost() == set()


def test_downgrade_to_a_release_that_cannot_read_the_files_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILE_FORMATS, (1, 3), 3)
    scenario = a_cluster("disque:1.3.0")
    scenario.world.edit(image="disque:1.2.0")
    scenario.settle()
    assert (images(scenario), replaced(scenario)) == ({"disque:1.3.0"}, [])
    assert "cannot read the files" in degraded(scenario)


def test_tag_that_hides_a_jump_stops_the_rollout_at_the_first_pod() -> None:
    scenario = a_cluster()
    scenario.world.versions["disque:latest"] = "1.5.0"
    scenario.world.edit(image="disque:latest")
    scenario.run(300)
    assert replaced(scenario) == ["mail-2"]
    assert degraded(scenario).startswith(
        "VersionRefused: the rollout has stopped, because mail-2 has started version 1.5.0"
    )
    assert degraded(scenario).endswith("Set spec.image to disque:1.2.0 first")
    scenario.world.edit(image="disque:1.2.0")
    scenario.settle()
    check_settled(scenario)
    assert scenario.world.lost() == set()


def test_tag_that_hides_a_downgrade_stops_at_the_first_pod_without_a_lost_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILE_FORMATS, (1, 3), 3)
    scenario = a_cluster("disque:1.3.0")
    scenario.world.versions["disque:stable"] = "1.2.0"
    scenario.world.edit(image="disque:stable")
    scenario.run(300)
    assert replaced(scenario) == ["mail-2"]
    assert degraded(scenario).startswith("CrashLooping")
    scenario.world.edit(image="disque:1.3.0")
    scenario.settle()
    check_settled(scenario)
    assert scenario.world.lost() == set()


def test_default_image_that_skips_releases_is_refused_until_someone_chooses_the_steps() -> None:
    fleet = Fleet("a", image="disque:1.2.0")
    fleet.install("disque:1.5.0")
    fleet.run(100)
    (scenario,) = fleet.clusters.values()
    assert images(scenario) == {"disque:1.2.0"}
    assert degraded(scenario).endswith("Set spec.image to choose a release")
    for image in ("disque:1.3.0", "disque:1.4.0", None):
        scenario.world.edit(image=image)
        fleet.settle()
    assert images(scenario) == {"disque:1.5.0"}
    assert condition_of(scenario.world.status, "Degraded")["status"] == "False"
