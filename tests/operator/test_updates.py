"""Updates that come with the operator: another default image or pod template. Clusters get them one after another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from disque_operator.actions import DeletePod
from disque_operator.apivalues import condition_of
from disque_operator.resources import pod_template
from disque_operator.spec import Upgrade, UpgradeWindow
from support.kubeworld.fleet import Fleet
from support.kubeworld.scenario import Scenario, a_spec, check_settled

OLD, NEW = "disque:1.2.0", "disque:1.3.0"


def condition(scenario: Scenario) -> tuple[str, str]:
    found = condition_of(scenario.world.status, "Updated")
    return found["status"], found["reason"]


def message(scenario: Scenario) -> str:
    text: str = condition_of(scenario.world.status, "Updated")["message"]
    return text


def replaced(scenario: Scenario) -> list[str]:
    return [action.name for action in scenario.acted if isinstance(action, DeletePod)]


def event_reasons(scenario: Scenario) -> list[str]:
    return [event.reason for event in scenario.events]


def newer_template(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the operator be of a release that makes another pod template."""
    monkeypatch.setitem(pod_template.SCRAPED, "example.org/release", "2")


# --- one cluster after another ----------------------------------------------------------------------------------------


def test_new_default_image_updates_one_cluster_at_a_time_in_order() -> None:
    fleet = Fleet("b", "c", "a", image=OLD)
    fleet.install(NEW)
    order: list[str] = []
    for _ in range(600):
        fleet.run(1)
        mixed = [name for name in "abc" if len(set(fleet.images(name))) > 1]
        assert len(mixed) <= 1
        order += [name for name in mixed if name not in order]
    assert order == ["a", "b", "c"]
    for name, scenario in fleet.clusters.items():
        assert fleet.images(name) == [NEW] * 3
        assert condition(scenario) == ("True", "Current")
        assert "availableImage" not in scenario.world.status


def test_waiting_cluster_says_what_it_waits_for_and_stays_as_it_is() -> None:
    fleet = Fleet("a", "b", image=OLD)
    fleet.install(NEW)
    fleet.until(lambda: NEW in fleet.images("a"))
    waiting = fleet.clusters["b"]
    assert condition(waiting) == ("False", "OtherCluster")
    assert message(waiting) == f"an update to image {NEW} waits: prod/a is updated first"
    assert waiting.world.status["availableImage"] == NEW
    assert (waiting.world.status["phase"], waiting.world.status["image"]) == ("Running", OLD)
    assert "UpdateAvailable" in event_reasons(waiting)


def test_pod_that_is_lost_while_the_update_waits_returns_with_the_old_image() -> None:
    fleet = Fleet("a", "b", image=OLD)
    fleet.install(NEW)
    fleet.until(lambda: NEW in fleet.images("a"))
    waiting = fleet.clusters["b"].world
    before = waiting.pods["b-2"].uid
    waiting.delete_pod("b-2", force=True)
    fleet.until(lambda: "b-2" in waiting.pods and waiting.pods["b-2"].uid != before)
    assert fleet.images("b") == [OLD] * 3


def test_next_cluster_waits_while_the_update_of_the_first_one_fails() -> None:
    fleet = Fleet("a", "b", image=OLD)
    fleet.install("disque:1.3.0-broken")
    fleet.run(900)
    assert fleet.images("b") == [OLD] * 3
    assert condition(fleet.clusters["b"]) == ("False", "OtherCluster")
    fleet.install(NEW)
    fleet.settle()
    assert fleet.images("a") == fleet.images("b") == [NEW] * 3


def test_unhealthy_cluster_does_not_hold_up_the_others() -> None:
    fleet = Fleet("a", "b", image=OLD)
    fleet.clusters["a"].world.full = True
    fleet.clusters["a"].world.delete_pod("a-1")
    fleet.run(60)
    fleet.install(NEW)
    fleet.until(lambda: fleet.images("b") == [NEW] * 3)
    assert condition(fleet.clusters["a"]) == ("False", "NotHealthy")
    assert set(fleet.images("a")) == {OLD}


def test_next_operator_continues_the_update_that_the_former_one_began() -> None:
    fleet = Fleet("a", "b", "c", image=OLD)
    fleet.install(NEW)
    fleet.until(lambda: NEW in fleet.images("b"))
    fleet.install(NEW)
    for _ in range(400):
        fleet.run(1)
        assert len([name for name in "abc" if len(set(fleet.images(name))) > 1]) <= 1
    assert [fleet.images(name) for name in "abc"] == [[NEW] * 3] * 3


def test_newer_pod_template_restarts_one_cluster_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = Fleet("a", "b", image=OLD)
    newer_template(monkeypatch)
    fleet.install(OLD)
    fleet.until(lambda: len(replaced(fleet.clusters["a"])) == 1)
    assert replaced(fleet.clusters["b"]) == []
    assert condition(fleet.clusters["b"]) == ("False", "OtherCluster")
    fleet.settle()
    for name, scenario in fleet.clusters.items():
        assert replaced(scenario) == [f"{name}-2", f"{name}-1", f"{name}-0"]


# --- the chosen image -------------------------------------------------------------------------------------------------


def a_cluster(**fields: object) -> Scenario:
    """Return a healthy cluster whose spec has no image."""
    scenario = Scenario(a_spec(image=None, **fields), load=False)
    scenario.world.default_image = OLD
    scenario.settle()
    return scenario


CLOSED = Upgrade(window=UpgradeWindow(days=("Monday",), start="01:00", end="01:30"))
"""The window is closed when a scenario starts: 2027-01-15 is a Friday."""


def waiting_for_its_window(**fields: object) -> Scenario:
    scenario = a_cluster(upgrade=CLOSED, **fields)
    scenario.world.default_image = NEW
    scenario.run(60)
    assert condition(scenario) == ("False", "WindowClosed")
    return scenario


@pytest.mark.parametrize("lost", ["status", "StatefulSet"])
def test_chosen_image_survives_the_loss_of(lost: str) -> None:
    scenario = waiting_for_its_window()
    if lost == "status":
        scenario.world.status = {}
    else:
        scenario.world.api.delete("StatefulSet", "mail")
    scenario.world.changed = True
    scenario.run(200)
    assert {pod.image for pod in scenario.world.pods.values()} == {OLD}
    assert scenario.world.status["image"] == OLD


def test_new_cluster_gets_the_default_image_outside_its_window() -> None:
    scenario = a_cluster(upgrade=CLOSED)
    assert {pod.image for pod in scenario.world.pods.values()} == {OLD}


def test_manual_change_of_the_image_is_reverted_while_an_update_waits() -> None:
    scenario = waiting_for_its_window()
    live = scenario.world.stateful_set()
    assert live is not None
    live["spec"]["template"]["spec"]["containers"][0]["image"] = "elsewhere:1"
    live["metadata"]["generation"] += 1
    scenario.world.api.touch(live)
    scenario.world.changed = True
    scenario.settle()
    assert {pod.image for pod in scenario.world.pods.values()} == {OLD}
    assert replaced(scenario) == []


def test_image_of_the_spec_is_applied_at_once_outside_the_window() -> None:
    scenario = waiting_for_its_window()
    scenario.world.edit(image=NEW)
    scenario.settle()
    check_settled(scenario)
    assert condition(scenario) == ("True", "Current")


def test_cluster_without_an_image_of_its_own_again_keeps_the_last_one_until_its_window() -> None:
    scenario = a_cluster(upgrade=CLOSED)
    scenario.world.edit(image=NEW)
    scenario.settle()
    scenario.world.edit(image=None)
    scenario.settle()
    assert {pod.image for pod in scenario.world.pods.values()} == {NEW}
    assert condition(scenario) == ("False", "WindowClosed")


def test_change_of_the_spec_is_applied_at_once_and_brings_no_new_image() -> None:
    scenario = waiting_for_its_window()
    scenario.world.edit(config={"tcp-backlog": "100"})
    scenario.settle()
    assert replaced(scenario) == ["mail-2", "mail-1", "mail-0"]
    assert {pod.image for pod in scenario.world.pods.values()} == {OLD}
    assert condition(scenario) == ("False", "WindowClosed")


def test_change_of_the_spec_without_effect_on_pods_does_not_start_a_waiting_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = a_cluster(upgrade=CLOSED)
    newer_template(monkeypatch)
    scenario.run(60)
    assert condition(scenario) == ("False", "WindowClosed")
    scenario.world.edit(config={"hz": "20"})
    scenario.world.edit(replicas=4)
    scenario.settle()
    assert replaced(scenario) == []


def test_paused_cluster_is_not_updated_and_does_not_hold_up_the_others() -> None:
    fleet = Fleet("a", "b", image=OLD)
    fleet.clusters["a"].world.edit(paused=True)
    fleet.install(NEW)
    fleet.until(lambda: fleet.images("b") == [NEW] * 3)
    assert fleet.images("a") == [OLD] * 3


def test_no_job_is_lost_by_updates_of_loaded_clusters() -> None:
    fleet = Fleet("a", "b", image=OLD)
    for scenario in fleet.clusters.values():
        for _ in range(20):
            assert scenario.add(2)
    fleet.install(NEW)
    fleet.settle()
    for name, scenario in fleet.clusters.items():
        assert fleet.images(name) == [NEW] * 3
        assert scenario.world.lost() == set()


# --- windows ----------------------------------------------------------------------------------------------------------


def test_update_starts_when_the_window_opens_and_continues_after_it_closes() -> None:
    scenario = a_cluster()
    now = datetime.fromtimestamp(scenario.world.now_s, UTC)
    opens = (now + timedelta(minutes=3)).replace(second=0)
    window = UpgradeWindow(start=f"{opens:%H:%M}", end=f"{opens + timedelta(minutes=1):%H:%M}")
    scenario.world.edit(upgrade=Upgrade(soak_s=60, window=window))
    scenario.world.default_image = NEW
    scenario.until(lambda: bool(replaced(scenario)))
    first_s = scenario.world.now_s
    assert opens.timestamp() <= first_s <= opens.timestamp() + 60
    scenario.settle()
    assert replaced(scenario) == ["mail-2", "mail-1", "mail-0"]
    assert scenario.world.now_s > first_s + 60


def test_message_says_when_the_window_opens() -> None:
    scenario = waiting_for_its_window()
    assert message(scenario) == f"an update to image {NEW} waits for Monday 01:00 UTC"
