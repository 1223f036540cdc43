"""How the bus of a running cluster is protected in steps: at any second, all members can connect to each other.

The world raises an error if two processes run that cannot, and if a job is lost.
"""

from __future__ import annotations

import pytest

from disque_operator import bus
from disque_operator.actions import DeletePod
from disque_operator.busmode import BusMode, read_mode
from disque_operator.spec import ClusterSecret, Tls
from support.kubeworld.scenario import Scenario, a_spec, check_settled
from support.kubeworld.values import at_rest, changed, condition, pod, reported, seen

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


# --- the cluster secret -----------------------------------------------------------------------------------------------

KNOWS_0, KNOWS_1 = (BusMode(secrets=(number,)) for number in (0, 1))
REQUIRES_0, REQUIRES_1, REQUIRES_BOTH = (BusMode(secrets=found, required=True) for found in ((0,), (1,), (0, 1)))
KNOWS_BOTH = BusMode(secrets=(0, 1))


@pytest.mark.parametrize(
    ("found", "wants", "gets"),
    [
        ((), 1, REQUIRES_1),
        ((), None, NO),
        ((NO,), 1, KNOWS_1),
        ((NO, KNOWS_1), 1, KNOWS_1),
        ((KNOWS_1,), 1, REQUIRES_1),
        ((KNOWS_1, REQUIRES_1), 1, REQUIRES_1),
        ((REQUIRES_0,), 1, REQUIRES_BOTH),
        ((REQUIRES_0, REQUIRES_BOTH), 1, REQUIRES_BOTH),
        ((REQUIRES_BOTH,), 1, REQUIRES_1),
        ((NO, KNOWS_0), 1, KNOWS_BOTH),
        ((REQUIRES_0,), None, KNOWS_0),
        ((REQUIRES_0, KNOWS_0), None, KNOWS_0),
        ((KNOWS_0,), None, NO),
        ((REQUIRES_0, REQUIRES_BOTH), None, KNOWS_0),
        ((REQUIRES_0, BusMode(secrets=(0, 1), required=True), REQUIRES_0), 2, BusMode(secrets=(0, 2), required=True)),
    ],
)
def test_new_pods_share_a_secret_with_all_that_exist(
    found: tuple[BusMode, ...], wants: int | None, gets: BusMode
) -> None:
    view = changed(at_rest(), cluster_secret=ClusterSecret(enabled=wants is not None, rotation=wants or 0))
    view = seen(view, bus_secrets={str(number): f"secret {number}" for number in range(3)})
    own = BusMode(secrets=() if wants is None else (wants,), required=wants is not None)
    for ordinal in range(3):
        view = pod(view, ordinal, bus=found[ordinal % len(found)] if found else own)
    decided = bus.decide(view)
    assert decided.mode == gets
    used = {one.file for one in (*found, gets) if one.secrets}
    assert used <= {*decided.files}
    assert all(decided.files[name].split("\n") == [f"secret {one}" for one in name.split("-")] for name in used)


def secret(scenario: Scenario, **fields: int | bool) -> None:
    scenario.world.edit(cluster_secret=ClusterSecret(**fields))  # type: ignore[arg-type]  # fields by name


def known(scenario: Scenario) -> set[tuple[tuple[int, ...], bool]]:
    return {(one.bus.secrets, one.bus.required) for one in scenario.world.pods.values()}


def test_new_cluster_requires_its_secret_at_once() -> None:
    scenario = Scenario(a_spec(cluster_secret=ClusterSecret(enabled=True)))
    scenario.settle()
    assert known(scenario) == {((0,), True)}
    assert not replaced(scenario)
    stored = scenario.world.observe().bus_secrets
    assert len(stored["0"]) == 64
    assert stored["0"] not in f"{scenario.world.status}{scenario.events}{scenario.log}"


def test_running_cluster_gets_another_secret_and_none_and_stays_whole() -> None:
    scenario = Scenario(a_spec())
    scenario.settle()
    secret(scenario, enabled=True)
    scenario.settle()
    assert known(scenario) == {((0,), True)}
    before = scenario.world.observe().bus_secrets["0"]
    secret(scenario, enabled=True, rotation=1)
    scenario.settle()
    assert known(scenario) == {((1,), True)}
    assert before not in scenario.world.observe().bus_secrets.values(), "the former secret is gone"
    secret(scenario)
    scenario.settle()
    assert known(scenario) == {((), False)}
    check_settled(scenario)


def test_tls_and_the_secret_change_together() -> None:
    scenario = Scenario(a_spec())
    scenario.settle()
    scenario.world.edit(tls=Tls(enabled=True), cluster_secret=ClusterSecret(enabled=True))
    scenario.settle()
    assert {one.bus for one in scenario.world.pods.values()} == {BusMode("yes", (0,), required=True)}
    assert len(replaced(scenario)) <= 6
    check_settled(scenario)


@pytest.mark.parametrize("seed", range(3))
def test_faults_while_the_secret_changes_separate_no_members(seed: int) -> None:
    scenario = Scenario(a_spec(cluster_secret=ClusterSecret(enabled=True)), seed)
    scenario.settle()
    for number in range(1, 9):
        secret(scenario, enabled=scenario.rng.random() < 0.7, rotation=number // 2)
        scenario.run(25)
        scenario.world.delete_pod(scenario.rng.choice(scenario.pods()))
    secret(scenario, enabled=True, rotation=9)
    scenario.settle()
    assert known(scenario) == {((9,), True)}
    check_settled(scenario)


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
