"""How the bus of a running cluster is protected in steps: at any second, all members can connect to each other.

The world raises an error if two processes run that cannot, and if a job is lost.
"""

from __future__ import annotations

import pytest

from disque_operator import bus
from disque_operator.actions import DeletePod
from disque_operator.busmode import BusMode, read_mode
from disque_operator.spec import Tls
from support.kubeworld.scenario import Scenario, a_spec, check_settled
from support.kubeworld.values import at_rest, changed, condition, pod, reported

NO, OPTIONAL, YES = BusMode("no"), BusMode("optional"), BusMode("yes")


def modes(scenario: Scenario) -> set[str]:
    return {one.bus.tls for one in scenario.world.pods.values()}


def replaced(scenario: Scenario) -> list[str]:
    return [action.name for action in scenario.acted if isinstance(action, DeletePod)]


def switch(scenario: Scenario, **fields: object) -> None:
    scenario.world.edit(tls=Tls(**fields))  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize(
    ("found", "wants", "gets"),
    [
        ((), True, "yes"),
        ((), False, "no"),
        ((NO,), True, "optional"),
        ((NO, OPTIONAL), True, "optional"),
        ((NO, OPTIONAL), False, "no"),
        ((OPTIONAL,), True, "yes"),
        ((OPTIONAL,), False, "no"),
        ((OPTIONAL, YES), True, "yes"),
        ((OPTIONAL, YES), False, "optional"),
        ((YES,), False, "optional"),
    ],
)
def test_new_pods_can_connect_to_all_that_exist(found: tuple[BusMode, ...], wants: bool, gets: str) -> None:

    view = changed(at_rest(), tls=Tls(enabled=True, bus=wants))
    for ordinal in range(3):
        view = pod(view, ordinal, bus=found[ordinal % len(found)] if found else (YES if wants else NO))
    assert bus.decide(view).mode.tls == gets


def test_new_cluster_requires_tls_between_members_at_once() -> None:
    scenario = Scenario(a_spec(tls=Tls(enabled=True)))
    scenario.settle()
    assert modes(scenario) == {"yes"}
    assert not replaced(scenario)


def test_running_cluster_is_switched_on_and_off_in_two_rollouts_each() -> None:
    scenario = Scenario(a_spec())
    scenario.settle()
    switch(scenario, enabled=True)
    scenario.until(lambda: "optional" in modes(scenario))
    assert reported_now(scenario) == "BusMode"
    scenario.settle()
    assert modes(scenario) == {"yes"}
    assert replaced(scenario) == ["mail-2", "mail-1", "mail-0", "mail-2", "mail-1"], (
        "the last one begins with both steps"
    )
    switch(scenario, enabled=True, bus=False)
    scenario.settle()
    assert modes(scenario) == {"no"}
    switch(scenario)
    scenario.settle()
    assert "tls" not in str((scenario.world.stateful_set() or {})["spec"]["template"])
    check_settled(scenario)


def reported_now(scenario: Scenario) -> str:
    return condition(scenario.world.status, "Progressing")[1]


def test_change_that_is_taken_back_ends_where_it_began() -> None:
    scenario = Scenario(a_spec(tls=Tls(enabled=True, bus=False)))
    scenario.settle()
    switch(scenario, enabled=True)
    scenario.until(lambda: modes(scenario) == {"no", "optional"})
    switch(scenario, enabled=True, bus=False)
    scenario.settle()
    assert modes(scenario) == {"no"}
    check_settled(scenario)


def test_certificate_stays_while_members_use_it() -> None:
    scenario = Scenario(a_spec(tls=Tls(enabled=True)))
    scenario.settle()
    switch(scenario)
    scenario.run(60)
    assert condition(scenario.world.status, "Degraded") == ("True", "BusEncrypted")
    assert modes(scenario) == {"yes"}
    assert not replaced(scenario)
    switch(scenario, enabled=True, bus=False)
    scenario.settle()
    switch(scenario)
    scenario.settle()
    check_settled(scenario)


def test_second_rollout_does_not_wait_for_the_window_of_updates() -> None:
    """It is part of what the spec asks for, not a change of the operator's own."""
    view = changed(at_rest(), tls=Tls(enabled=True, bus=True))
    assert reported(view, "Updated")[1] != "WindowClosed"


@pytest.mark.parametrize("seed", range(3))
def test_faults_during_the_change_separate_no_members(seed: int) -> None:
    scenario = Scenario(a_spec(), seed)
    scenario.settle()
    switch(scenario, enabled=True)
    for _ in range(12):
        scenario.run(20)
        scenario.world.delete_pod(scenario.rng.choice(scenario.pods()))
        switch(scenario, enabled=True, bus=scenario.rng.random() < 0.5)
    switch(scenario, enabled=True)
    scenario.settle()
    assert modes(scenario) == {"yes"}
    check_settled(scenario)


@pytest.mark.parametrize(
    ("arguments", "tls"),
    [((), "no"), (("--dir", "/data", "--tls-cluster", "yes"), "yes"), (("--tls-cluster", "later"), "no")],
)
def test_mode_is_read_from_the_arguments(arguments: tuple[str, ...], tls: str) -> None:
    assert read_mode(arguments).tls == tls
