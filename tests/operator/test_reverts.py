"""Fields that another program changes back: how often they are applied, and what is reported."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from disque_operator import names
from disque_operator.actions import Apply
from disque_operator.apivalues import Json, condition_of
from disque_operator.queue import Key
from disque_operator.reverts import FIRST_S, FORGET_S, LONGEST_S, TOLERATED, Reverts
from support.kubeworld.scenario import Scenario, check_settled

KEY: Key = ("ns", "c")
SERVICE = ("Service", "c")


@dataclass
class Harness:
    now_s: float = 1000.0
    counted: list[tuple[Key, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.subject = Reverts(lambda: self.now_s, lambda key, kind: self.counted.append((key, kind)))

    def apply(self, after_s: float = 2.0, what: str = "spec.type", digest: str = "d1", name: str = "c") -> None:
        self.now_s += after_s
        metadata = {"name": name, "annotations": {names.APPLIED: digest}}
        self.subject.applied(KEY, Apply({"kind": "Service", "metadata": metadata}, "test", what))

    @property
    def waits_s(self) -> float:
        """How long the object must not be applied."""
        began_s = self.now_s
        while self.subject.of(KEY)[SERVICE].waits:
            self.now_s += 1
        waited_s, self.now_s = self.now_s - began_s, began_s
        return waited_s


@pytest.fixture
def one() -> Harness:
    return Harness()


def test_repairs_of_a_few_manual_changes_are_not_delayed(one: Harness) -> None:
    for _ in range(TOLERATED - 1):
        one.apply()
        assert one.subject.of(KEY) == {}


def test_field_that_is_changed_back_repeatedly_waits_longer_each_time(one: Harness) -> None:
    waits: list[float] = []
    for _ in range(TOLERATED + 10):
        one.apply(after_s=waits[-1] if waits else 2.0)
        if SERVICE in one.subject.of(KEY):
            waits.append(one.waits_s)
    assert waits[:4] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S, 8 * FIRST_S]
    assert waits[-1] == max(waits) == LONGEST_S
    assert one.subject.of(KEY)[SERVICE].field == "spec.type"
    assert one.counted == [(KEY, "Service")] * (TOLERATED + 9)


@pytest.mark.parametrize("changed", [{"what": "spec.ports"}, {"digest": "d2"}, {"name": "other"}])
def test_other_fields_manifests_and_objects_have_their_own_row(one: Harness, changed: dict[str, str]) -> None:
    for _ in range(TOLERATED - 1):
        one.apply()
    one.apply(**changed)  # type: ignore[arg-type]  # arguments by name
    assert one.subject.of(KEY) == {}


def test_rare_manual_changes_do_not_add_up(one: Harness) -> None:
    for _ in range(20):
        one.apply(after_s=FORGET_S + 1)
    assert one.subject.of(KEY) == {}
    assert one.counted == []


def test_created_objects_are_not_counted(one: Harness) -> None:
    for _ in range(20):
        one.apply(what="")
    assert one.subject.of(KEY) == {}


def test_deleted_cluster_is_forgotten(one: Harness) -> None:
    for _ in range(TOLERATED):
        one.apply()
    one.subject.forget(KEY)
    assert one.subject.of(KEY) == {}


# --- with the planner -------------------------------------------------------------------------------------------------


def node_port(live: Json) -> None:
    if (live["kind"], live["metadata"]["name"]) == ("Service", "mail"):
        live["spec"]["type"] = "NodePort"


def applies(scenario: Scenario) -> int:
    return sum(isinstance(action, Apply) and action.field == "spec.type" for action in scenario.acted)


def contested() -> Scenario:
    """A cluster in whose Service a webhook has changed a field for an hour."""
    scenario = Scenario()
    scenario.settle()
    scenario.world.api.webhook = node_port
    live = scenario.world.api.get("Service", "mail")
    assert live is not None
    node_port(live)
    scenario.run(3600)
    return scenario


def test_webhook_causes_a_few_applies_and_a_condition_that_names_the_field() -> None:
    scenario = contested()
    assert TOLERATED < applies(scenario) <= 25
    degraded = condition_of(scenario.world.status, "Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "FieldReverted")
    assert degraded["message"].startswith("spec.type of Service mail is changed back whenever the operator applies it")
    assert [event.reason for event in scenario.events].count("FieldReverted") == 1


def test_field_that_is_changed_back_some_seconds_later_is_reported_without_a_break() -> None:
    scenario = Scenario()
    scenario.settle()
    degraded = []
    for second in range(900):
        live = scenario.world.api.get("Service", "mail")
        assert live is not None
        if second % 5 == 0 and live["spec"]["type"] != "NodePort":
            node_port(live)
            scenario.world.api.touch(live)
            scenario.world.changed = True
        scenario.run(1)
        degraded.append(condition_of(scenario.world.status, "Degraded")["status"] == "True")
    assert all(degraded[60:])
    assert [event.reason for event in scenario.events].count("FieldReverted") <= 2
    assert applies(scenario) < 15


@pytest.mark.slow
def test_new_spec_is_applied_at_once_despite_the_webhook() -> None:
    scenario = contested()
    before = applies(scenario)
    service = scenario.world.spec.service
    scenario.world.edit(service=service.model_copy(update={"port": 7000}))
    scenario.run(2)
    live = scenario.world.api.get("Service", "mail")
    assert live is not None
    assert live["spec"]["ports"][0]["port"] == 7000
    assert applies(scenario) == before + 1


@pytest.mark.slow
def test_cluster_recovers_when_the_webhook_is_gone() -> None:
    scenario = contested()
    scenario.world.api.webhook = lambda _live: None
    scenario.run(2 * int(LONGEST_S) + 20)
    assert condition_of(scenario.world.status, "Degraded")["status"] == "False"
    scenario.settle()
    check_settled(scenario)


def test_cluster_is_healed_and_scaled_despite_the_webhook() -> None:
    scenario = contested()
    scenario.world.edit(replicas=4)
    scenario.world.delete_pod("mail-1")
    scenario.until(lambda: len(scenario.world.pods) == 4 and all(pod.ready for pod in scenario.world.pods.values()))
