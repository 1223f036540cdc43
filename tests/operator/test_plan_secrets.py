"""The Secrets with passwords, one for brokers and one for clients: each restores the other, no client is rejected."""

from __future__ import annotations

import base64
import copy

import pytest

from disque_operator.actions import Apply, Command, DeletePod
from disque_operator.spec import Auth
from support.kubeworld.scenario import Scenario, a_spec, check_settled

BROKERS = "mail-auth"
CLIENTS = "mail-default-user"


def a_cluster() -> Scenario:
    scenario = Scenario(a_spec(), load=False)
    scenario.settle()
    return scenario


def data(scenario: Scenario, secret: str = CLIENTS) -> dict[str, str]:
    live = scenario.world.api.get("Secret", secret)
    assert live is not None
    return {key: base64.b64decode(value).decode() for key, value in live["data"].items()}


def acted_since(scenario: Scenario, first: int) -> list[str]:
    """Return what was done since this action, without passwords."""
    return [
        f"apply {action.manifest['metadata']['name']}" if isinstance(action, Apply) else type(action).__name__
        for action in scenario.acted[first:]
    ]


def rotate(scenario: Scenario) -> None:
    auth = scenario.world.spec.auth
    scenario.world.edit(auth=auth.model_copy(update={"rotation": auth.rotation + 1}))


def test_clients_get_what_they_need_to_connect() -> None:
    scenario = a_cluster()
    found = data(scenario)
    password = found["password"]
    assert found == {
        "type": "disque",
        "provider": "disque",
        "host": "mail.prod.svc",
        "port": "7711",
        "username": "default",
        "password": password,
        "uri": f"disque://default:{password}@mail.prod.svc:7711",
    }
    live = scenario.world.api.get("Secret", CLIENTS)
    assert live is not None
    assert live["type"] == "servicebinding.io/disque"
    assert scenario.world.status["binding"] == {"name": CLIENTS}
    assert scenario.world.status["secretName"] == CLIENTS


def test_clients_see_no_password_but_the_current_one_during_a_rotation() -> None:
    scenario = a_cluster()
    seen: set[str] = set()
    rotate(scenario)
    for _ in range(200):
        scenario.run(1)
        seen |= data(scenario).keys()
    assert seen == {"type", "provider", "host", "port", "username", "password", "uri"}
    check_settled(scenario)


def test_clients_need_no_password_while_authentication_is_off() -> None:
    scenario = a_cluster()
    scenario.world.edit(auth=Auth(enabled=False))
    scenario.settle()
    assert "password" not in data(scenario)
    assert data(scenario)["uri"] == "disque://mail.prod.svc:7711"


def test_cluster_of_an_earlier_operator_gets_the_secret_for_clients_and_nothing_else_changes() -> None:
    scenario = a_cluster()
    before, first = copy.deepcopy(scenario.world.api.get("Secret", BROKERS)), len(scenario.acted)
    scenario.world.api.delete("Secret", CLIENTS)
    scenario.world.changed = True
    scenario.settle()
    assert acted_since(scenario, first) == [f"apply {CLIENTS}"]
    assert scenario.world.api.get("Secret", BROKERS) == before
    assert data(scenario)["password"] == data(scenario, BROKERS)["password"]


def test_deleted_secret_of_the_brokers_is_restored_from_that_of_the_clients() -> None:
    scenario = a_cluster()
    password, first = data(scenario)["password"], len(scenario.acted)
    scenario.world.api.delete("Secret", BROKERS)
    scenario.world.changed = True
    scenario.settle()
    check_settled(scenario)
    assert acted_since(scenario, first) == [f"apply {BROKERS}"]
    assert data(scenario, BROKERS)["password"] == data(scenario)["password"] == password


@pytest.mark.slow
@pytest.mark.parametrize("secret", [BROKERS, CLIENTS])
def test_no_client_is_rejected_when_a_secret_is_deleted_during_a_rotation(secret: str) -> None:
    for delay_s in range(12):
        scenario = a_cluster()
        before = data(scenario)["password"]
        rotate(scenario)
        scenario.run(delay_s)
        current = data(scenario)["password"]
        scenario.world.api.delete("Secret", secret)
        scenario.world.changed = True
        for _ in range(240):
            scenario.run(1)
            for broker in scenario.world.bus.running.values():
                assert broker.accepts(current), f"after {delay_s} s"
            if scenario.world.api.get("Secret", CLIENTS) is not None and data(scenario)["password"] != current:
                break
        assert not [one for one in scenario.acted if isinstance(one, DeletePod)]
        scenario.settle()
        check_settled(scenario)
        assert data(scenario)["password"] != before


def test_previous_password_stays_valid_for_the_grace_period_after_the_secret_was_restored() -> None:
    scenario = a_cluster()
    before = data(scenario)["password"]
    rotate(scenario)
    scenario.until(lambda: data(scenario)["password"] != before, 60)
    changed_s = scenario.world.now_s
    scenario.world.api.delete("Secret", BROKERS)
    scenario.world.changed = True
    while scenario.world.now_s < changed_s + scenario.world.spec.auth.grace_s - 2:
        scenario.run(1)
        assert all(broker.accepts(before) for broker in scenario.world.bus.running.values())
    scenario.settle()
    check_settled(scenario)
    assert not any(broker.accepts(before) for broker in scenario.world.bus.running.values())


def test_authentication_is_switched_off_although_the_secret_of_the_brokers_was_deleted() -> None:
    """While the cluster is paused nothing is restored, and then both is done in one round (seed 124)."""
    scenario = a_cluster()
    scenario.world.edit(paused=True)
    scenario.world.api.delete("Secret", BROKERS)
    scenario.world.edit(auth=Auth(enabled=False))
    scenario.run(60)
    first = len(scenario.acted)
    scenario.world.edit(paused=False)
    scenario.settle()
    assert "DeletePod" not in acted_since(scenario, first), "the operator can still log in to the brokers"
    check_settled(scenario)


def test_password_is_replaced_by_restarts_only_if_both_secrets_are_lost() -> None:
    scenario = a_cluster()
    for secret in (BROKERS, CLIENTS):
        scenario.world.api.delete("Secret", secret)
    scenario.run(60)
    scenario.settle()
    check_settled(scenario)
    replaced = {one.name for one in scenario.acted if isinstance(one, DeletePod)}
    assert replaced == {"mail-0", "mail-1", "mail-2"}


def test_password_of_the_user_reaches_clients_after_brokers_when_the_secret_of_the_brokers_was_deleted() -> None:
    scenario = a_cluster()
    scenario.world.own_password = "mine"
    scenario.world.edit(auth=Auth(secret_name="own", grace_s=60))
    scenario.world.api.delete("Secret", BROKERS)
    while data(scenario)["password"] != "mine":
        password = data(scenario)["password"]
        scenario.run(1)
        assert all(broker.accepts(password) for broker in scenario.world.bus.running.values())
    scenario.settle()
    check_settled(scenario)
    assert not [one for one in scenario.acted if isinstance(one, DeletePod)]
    assert [one for one in scenario.acted if isinstance(one, Command)]
