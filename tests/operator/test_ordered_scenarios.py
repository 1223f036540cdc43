"""Ordered queues of a cluster over time: upgrades, scaling, lost volumes and lost catalogs."""

from __future__ import annotations

import pytest

from disque_operator import names
from disque_operator.actions import Command
from disque_operator.apivalues import Json, condition_of
from disque_operator.orderedspec import OrderedQueues
from support.kubeworld.scenario import FaultRates, Scenario, a_spec, check_settled, end_faults

ENABLED = OrderedQueues(enabled=True)


def queue(name: str, **spec: object) -> Json:
    return {
        "kind": names.QUEUE_KIND,
        "metadata": {"name": name, "namespace": "prod"},
        "spec": {"clusterRef": {"name": "mail"}, "type": "ordered", **spec},
    }


def running(replicas: int = 3, *queues: str) -> Scenario:
    """Return a cluster with ordered queues, at rest."""
    scenario = Scenario(a_spec(replicas=replicas, ordered=ENABLED), load=False)
    for name in queues:
        scenario.world.api.put(queue(name))
    scenario.settle()
    return scenario


def sent(scenario: Scenario, *words: str) -> list[Command]:
    """Return the commands that began with these words."""
    commands = [action for action in scenario.acted if isinstance(action, Command)]
    return [command for command in commands if command.words[: len(words)] == words]


def state(scenario: Scenario) -> tuple[str, str]:
    found = condition_of(scenario.world.status, "OrderedReady")
    return found["status"], found["reason"]


def resource_state(scenario: Scenario, name: str) -> tuple[str, str]:
    resource = scenario.world.api.get(names.QUEUE_KIND, name)
    assert resource is not None
    found = condition_of(resource["status"], "Ready")
    return found["status"], found["reason"]


def test_new_cluster_founds_its_catalog_once_and_makes_its_queues() -> None:
    scenario = running(3, "orders", "mails")
    assert len(sent(scenario, "CLUSTER", "ORDERED", "INIT")) == 1
    assert sorted(command.words[1] for command in sent(scenario, "QNEW")) == ["mails", "orders"]
    assert state(scenario) == ("True", "AllLed")
    assert resource_state(scenario, "orders") == ("True", "Applied")
    check_settled(scenario)


def test_cluster_that_gets_ordered_queues_later_founds_the_catalog_without_replacing_a_pod() -> None:
    scenario = Scenario(a_spec(), load=False)
    scenario.settle()
    pods = {pod.uid for pod in scenario.world.pods.values()}
    scenario.world.edit(ordered=ENABLED)
    scenario.settle()
    assert scenario.world.ordered.founded == 1
    assert {pod.uid for pod in scenario.world.pods.values()} == pods


@pytest.mark.parametrize("crash", [1, 2])
def test_operator_that_crashes_after_founding_founds_no_second_catalog(crash: int) -> None:
    plain = running()
    [founding] = [number for number, action in enumerate(plain.acted, 1) if action in sent(plain, "CLUSTER", "ORDERED")]
    scenario = Scenario(a_spec(ordered=ENABLED), load=False, crash_after=founding - 1 + crash - 1)
    scenario.settle()
    assert scenario.world.ordered.founded == 1
    assert scenario.world.status["ordered"]["catalog"] == "c1"


def test_upgrade_never_costs_a_queue_its_majority() -> None:
    scenario = running(5, "orders", "mails", "bills", "notes")
    scenario.world.edit(image="disque:2")
    scenario.settle()  # the world checks each pod that the operator stops
    assert {pod.image for pod in scenario.world.pods.values()} == {"disque:2"}
    assert state(scenario) == ("True", "AllLed")


def test_scale_from_3_to_5_to_3_hands_over_all_replicas() -> None:
    scenario = running(3, "orders", "mails")
    scenario.world.edit(replicas=5)
    scenario.settle()
    for name in ("bills", "notes", "calls"):
        scenario.world.api.put(queue(name))
    scenario.settle()
    gone = [scenario.world.bus.running[f"mail-{ordinal}"].node_id for ordinal in (3, 4)]
    assert any(scenario.world.ordered.replicas_on(node_id) for node_id in gone), "the new members have replicas"
    scenario.world.edit(replicas=3)
    scenario.settle()
    assert not any(scenario.world.ordered.replicas_on(node_id) for node_id in gone)
    assert state(scenario) == ("True", "AllLed")
    check_settled(scenario)


def test_scale_below_the_replicas_of_a_queue_is_refused_until_it_is_dropped() -> None:
    scenario = running(3, "orders")
    scenario.world.edit(replicas=2, ordered=OrderedQueues(enabled=True, replicas=1))
    scenario.settle()
    assert condition_of(scenario.world.status, "Draining")["reason"] == "NotEnoughMembers"
    assert len(scenario.world.pods) == 3
    scenario.world.api.delete(names.QUEUE_KIND, "orders")
    scenario.world.changed = True
    scenario.until(lambda: len(scenario.world.pods) == 2)


def test_lost_volume_is_replaced_by_a_replica_on_the_new_member() -> None:
    scenario = running(3, "orders", "mails")
    lost = scenario.world.bus.running["mail-1"].node_id
    scenario.world.delete_claim(1)
    scenario.world.delete_pod("mail-1", force=True)
    scenario.settle()
    new = scenario.world.bus.running["mail-1"].node_id
    assert new != lost
    for name in ("orders", "mails"):
        replicas = scenario.world.ordered.queues[name].replicas
        assert (lost in replicas, new in replicas, len(replicas)) == (False, True, 3)
    assert len(sent(scenario, "CLUSTER", "ORDERED", "INIT")) == 1


def test_queue_of_a_deleted_resource_is_dropped_when_its_jobs_are_finished() -> None:
    scenario = running(3, "orders")
    scenario.world.ordered.queues["orders"].jobs = 5
    scenario.world.api.delete(names.QUEUE_KIND, "orders")
    scenario.world.changed = True
    scenario.run(120)
    assert scenario.world.status["ordered"]["waitingToDrop"] == ["orders"]
    assert sent(scenario, "QDROP") == []
    scenario.world.ordered.queues["orders"].jobs = 0
    scenario.until(lambda: not scenario.world.ordered.queues)
    scenario.run(60)
    assert scenario.world.status["ordered"]["waitingToDrop"] == []


def test_queue_of_a_resource_that_is_made_again_is_kept() -> None:
    scenario = running(3, "orders")
    scenario.world.ordered.queues["orders"].jobs = 5
    scenario.world.api.delete(names.QUEUE_KIND, "orders")
    scenario.world.changed = True
    scenario.run(60)
    scenario.world.api.put(queue("orders"))
    scenario.settle()
    scenario.world.ordered.queues["orders"].jobs = 0
    scenario.run(120)
    assert sent(scenario, "QDROP") == []
    assert resource_state(scenario, "orders") == ("True", "Applied")


def test_catalog_whose_volumes_are_all_lost_is_not_founded_again() -> None:
    scenario = running(3, "orders")
    for ordinal in range(3):
        scenario.world.delete_claim(ordinal)
        scenario.world.delete_pod(f"mail-{ordinal}", force=True)
    scenario.run(400)
    assert scenario.world.ordered.founded == 1
    assert state(scenario) == ("False", "CatalogLost")
    assert condition_of(scenario.world.status, "Degraded")["reason"] == "CatalogLost"


def test_hibernated_cluster_wakes_with_its_catalog() -> None:
    scenario = running(3, "orders")
    scenario.world.edit(hibernate=True)
    scenario.settle()
    assert scenario.world.status["ordered"]["catalog"] == "c1"
    scenario.world.edit(hibernate=False)
    scenario.settle()
    assert state(scenario) == ("True", "AllLed")
    assert scenario.world.ordered.founded == 1


@pytest.mark.parametrize("seed", range(6))
def test_crashes_and_conflicts_of_the_operator_make_one_catalog_and_all_queues(seed: int) -> None:
    scenario = Scenario(a_spec(replicas=4, ordered=ENABLED), seed, FaultRates(crash=0.2, conflict=0.1))
    for name in ("orders", "mails", "bills"):
        scenario.world.api.put(queue(name))
    scenario.run(200)
    scenario.world.edit(image="disque:2")
    scenario.run(200)
    scenario.world.edit(replicas=3)
    scenario.run(200)
    end_faults(scenario)
    scenario.load = False
    scenario.settle()
    assert scenario.world.ordered.founded == 1
    assert set(scenario.world.ordered.queues) == {"orders", "mails", "bills"}
    assert state(scenario) == ("True", "AllLed")
