"""Users and queues in a model of Kubernetes: restarts, new members, deletions, an operator that crashes."""

from __future__ import annotations

from typing import Any

import pytest

from disque_operator import names
from disque_operator.apivalues import Json, condition_of
from disque_operator.declared import REMEMBERED_S
from support.kubeworld.scenario import FaultRates, Scenario, a_spec, end_faults
from support.kubeworld.world import SECRET_LAG_S


def a_cluster(**more: Any) -> Scenario:
    scenario = Scenario(a_spec(replicas=3), load=False, **more)
    scenario.settle()
    return scenario


def declare(scenario: Scenario, kind: str, name: str, **spec: Any) -> None:
    scenario.world.api.put(
        {
            "apiVersion": names.API_VERSION,
            "kind": kind,
            "metadata": {"name": name, "namespace": scenario.world.spec.namespace, "creationTimestamp": "2027-01-01"},
            "spec": {"clusterRef": {"name": scenario.world.spec.name}, **spec},
        }
    )
    scenario.world.changed = True


def user(scenario: Scenario, name: str = "shop", **spec: Any) -> None:
    declare(scenario, names.USER_KIND, name, **({"queues": ["mail:*"], "allow": ["@producer"]} | spec))


def delete(scenario: Scenario, kind: str, name: str) -> None:
    scenario.world.api.delete(kind, name)
    scenario.world.changed = True


def ready(scenario: Scenario, kind: str = names.USER_KIND, name: str = "shop") -> str:
    live = scenario.world.api.get(kind, name)
    assert live is not None
    return str(condition_of(live.get("status") or {}, "Ready").get("reason"))


def rules(scenario: Scenario) -> set[str | None]:
    """Return the rules of the user on all running brokers."""
    return {broker.users.get("shop") for broker in scenario.world.bus.running.values()}


def without_password(found: set[str | None]) -> set[str | None]:
    return {None if one is None else " ".join(word for word in one.split() if word[0] != "#") for one in found}


EXPECTED: set[str | None] = {"on ~mail:* +@producer"}


def test_user_is_on_all_members_and_on_new_ones() -> None:
    scenario = a_cluster()
    user(scenario)
    scenario.settle()
    assert without_password(rules(scenario)) == EXPECTED
    assert ready(scenario) == "Applied"
    scenario.world.edit(replicas=5)
    scenario.settle()
    assert len(scenario.world.bus.running) == 5
    assert len(rules(scenario)) == 1


def test_broker_that_restarts_has_its_users_before_the_operator_acts() -> None:
    scenario = a_cluster()
    user(scenario)
    scenario.settle()
    for _ in range(int(SECRET_LAG_S) + 1):
        scenario.world.step()
    for pod in scenario.pods():
        scenario.world.crash(pod)
    while len(scenario.world.bus.running) < 3:
        scenario.world.step()
    assert without_password(rules(scenario)) == EXPECTED


def test_deleted_user_does_not_return_with_a_broker_that_reads_an_old_secret() -> None:
    scenario = a_cluster()
    user(scenario)
    scenario.settle()
    scenario.run(int(SECRET_LAG_S) + 1)
    delete(scenario, names.USER_KIND, "shop")
    scenario.until(lambda: rules(scenario) == {None})
    for pod in scenario.pods():
        scenario.world.crash(pod)
    scenario.until(lambda: len(scenario.world.bus.running) == 3)
    scenario.settle()
    assert rules(scenario) == {None}
    scenario.run(int(REMEMBERED_S) + 60)
    secret = scenario.world.api.get("Secret", names.auth_secret(scenario.world.spec.name))
    assert secret is not None
    assert "declared.json" not in secret["data"]


def test_generated_password_is_restored_if_its_secret_is_deleted() -> None:
    scenario = a_cluster()
    user(scenario)
    scenario.settle()
    before = rules(scenario)
    delete(scenario, "Secret", "shop-disque-user")
    scenario.settle()
    assert len(rules(scenario)) == 1
    assert rules(scenario) != before


def test_queue_is_paused_everywhere_and_resumed_when_its_resource_is_deleted() -> None:
    scenario = a_cluster()
    declare(scenario, names.QUEUE_KIND, "orders", pause="Out")
    scenario.settle()
    disks = list(scenario.world.disks.values())
    assert [disk.pauses["orders"] for disk in disks] == ["out"] * 3
    assert ready(scenario, names.QUEUE_KIND, "orders") == "Applied"
    disks[1].pauses["orders"] = "none"
    scenario.run(60)
    assert disks[1].pauses["orders"] == "out", "it drifted"
    delete(scenario, names.QUEUE_KIND, "orders")
    scenario.settle()
    assert [disk.pauses["orders"] for disk in disks] == ["none"] * 3


def test_schedule_is_set_paused_restored_and_removed_when_its_resource_is_deleted() -> None:
    scenario = a_cluster()
    declare(scenario, names.SCHEDULE_KIND, "nightly", when="@daily", queue="reports", body="sales", paused=True)
    scenario.settle()
    disks = list(scenario.world.disks.values())
    assert [disk.schedules["nightly"]["paused"] for disk in disks] == ["yes"] * 3
    assert ready(scenario, names.SCHEDULE_KIND, "nightly") == "Applied"
    disks[1].schedules["nightly"]["body"] = "other"
    scenario.run(60)
    assert disks[1].schedules["nightly"]["body"] == "sales", "it was changed"
    delete(scenario, names.SCHEDULE_KIND, "nightly")
    scenario.settle()
    assert [disk.schedules for disk in disks] == [{}] * 3


def count_of_actions() -> int:
    scenario = a_cluster()
    before = len(scenario.acted)
    live_through_a_user(scenario)
    return len(scenario.acted) - before


def live_through_a_user(scenario: Scenario) -> None:
    user(scenario)
    scenario.settle()
    live: Json | None = scenario.world.api.get(names.USER_KIND, "shop")
    assert live is not None
    live["spec"]["allow"] = ["@consumer"]
    live["metadata"]["generation"] = 2
    scenario.world.api.touch(live)
    scenario.world.changed = True
    scenario.settle()
    assert without_password(rules(scenario)) == {"on ~mail:* +@consumer"}
    assert ready(scenario) == "Applied"
    delete(scenario, names.USER_KIND, "shop")
    scenario.settle()
    assert rules(scenario) == {None}


@pytest.mark.slow
def test_operator_may_crash_after_any_action() -> None:
    for number in range(1, count_of_actions() + 1):
        scenario = a_cluster()
        scenario.crash_after = len(scenario.acted) + number
        live_through_a_user(scenario)


@pytest.mark.parametrize("seed", range(1, 7))
def test_users_settle_after_faults(seed: int) -> None:
    scenario = a_cluster(seed=seed)
    user(scenario)
    declare(scenario, names.QUEUE_KIND, "orders", pause="In")
    scenario.rates = FaultRates(crash=0.1, stale=0.1, conflict=0.1, fault=0.02)
    scenario.run(300)
    end_faults(scenario)
    scenario.settle()
    answering = scenario.world.observe().brokers
    assert ready(scenario) == ("Applied" if answering else "NoMembers"), "a fault may be to hibernate"
    assert without_password({broker.users.get("shop") for broker in answering.values()}) <= EXPECTED
    assert {broker.pauses["orders"] for broker in answering.values()} <= {"in"}
