"""Scenarios of a cluster in virtual time: every requested change completes, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from disque_operator import names
from disque_operator.actions import Command, DeletePod
from disque_operator.spec import Drain, Persistence, Storage, VolumeRetention
from support.kubeworld.scenario import Scenario, a_spec, check_settled, run_faults

EPHEMERAL: dict[str, Any] = {"storage": Storage(ephemeral=True), "persistence": Persistence(appendonly=False)}


def a_scenario(replicas: int = 3, jobs: int = 20, **fields: Any) -> Scenario:
    """Return a healthy cluster, with jobs that no worker takes."""
    scenario = Scenario(a_spec(replicas=replicas, **fields), load=False)
    scenario.settle()
    for _ in range(jobs):
        assert scenario.add()
    return scenario


def words(scenario: Scenario, *command: str) -> list[str]:
    """Return the pods that got a command."""
    return [
        action.pod
        for action in scenario.acted
        if isinstance(action, Command) and action.words[: len(command)] == command
    ]


def replaced(scenario: Scenario) -> list[str]:
    return [action.name for action in scenario.acted if isinstance(action, DeletePod)]


def reasons(scenario: Scenario) -> list[str]:
    return [event.reason for event in scenario.events]


def claims(scenario: Scenario) -> list[int]:
    return [volume.ordinal for volume in scenario.world.observe().volumes]


def node_ids(scenario: Scenario) -> dict[str, str]:
    return {pod: broker.node_id for pod, broker in scenario.world.bus.running.items()}


def leaves(scenario: Scenario, pod: str) -> Callable[[], bool]:
    def is_leaving() -> bool:
        broker = scenario.world.bus.running.get(pod)
        return broker is not None and broker.disk.leaving

    return is_leaving


def test_cluster_is_created_and_reported_once() -> None:
    scenario = Scenario(load=False)
    scenario.until(lambda: scenario.world.status.get("phase") == "Running", 60)
    scenario.settle()
    check_settled(scenario)
    assert reasons(scenario) == ["Creating", "MemberIntroduced", "MemberIntroduced", "Running"]


def test_scale_up_adds_all_pods_at_once() -> None:
    scenario = a_scenario()
    before = node_ids(scenario)
    scenario.world.edit(replicas=5)
    scenario.settle()
    check_settled(scenario)
    assert node_ids(scenario).items() > before.items()


def test_operator_introduces_each_new_member_once_as_soon_as_it_answers() -> None:
    scenario = a_scenario()
    world, first, seen = scenario.world, len(scenario.acted), len(scenario.events)
    world.bus.no_seeds_until_s = world.now_s + 10_000
    world.edit(replicas=5)
    scenario.until(lambda: len(world.pods) == 5 and all(pod.ready for pod in world.pods.values()), 60)
    ready_s = world.now_s
    scenario.until(lambda: world.status["phase"] == "Running", 60)
    assert world.now_s - ready_s <= 5
    scenario.settle()
    check_settled(scenario)
    met = [one.met for one in scenario.acted[first:] if isinstance(one, Command) and one.met]
    ids = node_ids(scenario)
    assert sorted(met) == [("mail-3", ids["mail-3"]), ("mail-4", ids["mail-4"])]
    introduced = [event.message for event in scenario.events[seen:] if event.reason == "MemberIntroduced"]
    assert introduced == [f"mail-0 meets {pod} (node {node}): {pod} is a new member" for pod, node in met]


def test_members_join_by_their_seeds_without_the_operator() -> None:
    scenario = a_scenario()
    scenario.world.edit(replicas=4)
    scenario.until(lambda: "mail-3" in scenario.world.pods, 60)
    for _ in range(60):
        scenario.world.step()
    assert all(len(broker.connected) == 3 for broker in scenario.world.bus.running.values())
    scenario.settle()
    check_settled(scenario)
    assert words(scenario, "CLUSTER", "MEET") == ["mail-0", "mail-0"], "only those of the first three members"


def test_scale_down_removes_one_pod_at_a_time_without_losing_a_job() -> None:
    scenario = a_scenario(5, jobs=40)
    scenario.world.edit(replicas=1)
    scenario.settle()
    check_settled(scenario)
    assert words(scenario, "CLUSTER", "LEAVING", "yes") == ["mail-4", "mail-3", "mail-2", "mail-1"]
    assert len(words(scenario, "CLUSTER", "FORGET")) == 4 + 3 + 2 + 1
    assert claims(scenario) == [0]
    assert reasons(scenario).count("DrainStarted") == reasons(scenario).count("DrainFinished") == 4


def test_claims_are_kept_with_when_scaled_retain() -> None:
    scenario = a_scenario(storage=Storage(retention=VolumeRetention(when_scaled="Retain")))
    scenario.world.edit(replicas=1)
    scenario.settle()
    check_settled(scenario)
    assert claims(scenario) == [0, 1, 2]


def test_scale_down_can_be_cancelled() -> None:
    scenario = a_scenario(jobs=40)
    scenario.world.edit(replicas=2)
    scenario.until(leaves(scenario, "mail-2"))
    scenario.run(5)
    scenario.world.edit(replicas=3)
    scenario.settle()
    check_settled(scenario)
    assert "DrainCancelled" in reasons(scenario)
    assert words(scenario, "CLUSTER", "FORGET") == []


def test_pod_is_recreated_when_a_scale_down_is_cancelled_too_late() -> None:
    scenario = a_scenario()
    scenario.world.edit(replicas=2)
    scenario.until(lambda: scenario.world.pods["mail-2"].ends_s is not None)
    scenario.world.edit(replicas=3)
    scenario.settle()
    check_settled(scenario)
    assert claims(scenario) == [0, 1, 2]


def test_new_replicas_during_a_drain_apply_after_it() -> None:
    scenario = a_scenario(4, jobs=40)
    scenario.world.edit(replicas=3)
    scenario.until(leaves(scenario, "mail-3"))
    scenario.world.edit(replicas=2)
    scenario.settle()
    check_settled(scenario)
    assert words(scenario, "CLUSTER", "LEAVING", "no") == []


def test_drain_continues_after_the_broker_restarts() -> None:
    scenario = a_scenario(jobs=60)
    scenario.world.edit(replicas=2)
    scenario.until(leaves(scenario, "mail-2"))
    scenario.run(5)
    scenario.world.delete_pod("mail-2", force=True)
    scenario.settle()
    check_settled(scenario)
    assert words(scenario, "CLUSTER", "LEAVING", "yes") == ["mail-2"]


def test_scale_down_waits_for_jobs_that_need_more_copies() -> None:
    scenario = a_scenario(jobs=0)
    assert scenario.add(replicate=2)
    scenario.world.edit(replicas=1)
    scenario.settle()
    assert len(scenario.world.pods) == 2
    assert reasons(scenario)[-2:] == ["DrainRefused", "Running"]
    scenario.finish(more_than=1)
    scenario.settle()
    check_settled(scenario)


def test_retain_keeps_remaining_jobs_on_the_volume() -> None:
    scenario = a_scenario(jobs=90, drain=Drain(timeout_s=10, on_timeout="Retain"))
    scenario.world.edit(replicas=2)
    scenario.settle()
    check_settled(scenario)
    assert claims(scenario) == [0, 1, 2]
    scenario.world.edit(replicas=3)
    scenario.settle()
    check_settled(scenario)
    assert sum(len(broker.disk.jobs) for broker in scenario.world.bus.running.values()) == 90


def test_upgrade_replaces_pods_from_the_highest_ordinal() -> None:
    scenario = a_scenario()
    before = node_ids(scenario)
    scenario.world.edit(image="disque:2")
    scenario.settle()
    check_settled(scenario)
    assert replaced(scenario) == ["mail-2", "mail-1", "mail-0"]
    assert node_ids(scenario) == before
    assert scenario.world.status["formerImage"] == "disque:1"
    assert scenario.world.status["version"] == "2"


@pytest.mark.parametrize("image", ["disque:broken", "disque:missing"])
def test_upgrade_to_a_broken_image_stops_at_the_first_pod_and_can_be_reverted(image: str) -> None:
    scenario = a_scenario()
    scenario.world.edit(image=image)
    scenario.until(lambda: scenario.world.status.get("phase") == "Degraded")
    scenario.run(900)
    assert replaced(scenario) == ["mail-2"]
    assert [pod.ready for pod in scenario.world.pods.values()].count(True) == 2
    assert scenario.world.status["formerImage"] == "disque:1"
    scenario.world.edit(image=scenario.world.status["formerImage"])
    scenario.settle()
    check_settled(scenario)
    assert replaced(scenario) == ["mail-2", "mail-2"]


def test_ephemeral_pods_are_drained_before_replacement() -> None:
    scenario = a_scenario(**EPHEMERAL)
    before = node_ids(scenario)
    scenario.world.edit(image="disque:2")
    scenario.settle()
    check_settled(scenario)
    assert not set(before.values()) & set(node_ids(scenario).values())


def test_rollout_waits_until_lost_copies_are_made_again() -> None:
    scenario = a_scenario(replicas=5, jobs=0, **EPHEMERAL)
    jobs = [scenario.add(2) for _ in range(40)]
    scenario.world.edit(image="disque:2")
    bus = scenario.world.bus
    for crashed in ("mail-0", "mail-1", "mail-2"):
        before = len(replaced(scenario))
        scenario.until(lambda before=before: len(replaced(scenario)) > before)  # type: ignore[misc]
        scenario.until(lambda: [pod.ready for pod in scenario.world.pods.values()] == [True] * 5)
        scenario.world.crash(crashed, empty=True)
        scenario.until(lambda crashed=crashed: crashed in bus.running)  # type: ignore[misc]
        begun = len(replaced(scenario))
        while any(map(bus.short, bus.running.values())):
            assert len(replaced(scenario)) == begun, "no pod is stopped before all copies exist"
            scenario.run(1)
    scenario.settle()
    check_settled(scenario)
    assert None not in jobs
    assert scenario.world.lost() == set()


def test_only_some_directives_need_a_restart() -> None:
    scenario = a_scenario()
    scenario.world.edit(config={"slowlog-max-len": "64"})
    scenario.settle()
    assert replaced(scenario) == []
    scenario.world.edit(config={})
    scenario.settle()
    check_settled(scenario)
    scenario.world.edit(config={"tcp-backlog": "100"})
    scenario.settle()
    check_settled(scenario)
    assert replaced(scenario) == ["mail-2", "mail-1", "mail-0"]


def test_restart_at_restarts_all_pods() -> None:
    scenario = a_scenario()
    scenario.world.edit(annotations={names.RESTART_AT: "now"})
    scenario.settle()
    check_settled(scenario)
    assert replaced(scenario) == ["mail-2", "mail-1", "mail-0"]


def test_password_rotation_rejects_no_client() -> None:
    scenario = a_scenario()
    world = scenario.world
    old = given(scenario)
    world.edit(auth=world.spec.auth.model_copy(update={"rotation": 1}))
    changed_s = 0.0
    while changed_s == 0.0 or world.now_s < changed_s + world.spec.auth.grace_s:
        scenario.run(1)
        if given(scenario) != old:
            changed_s = changed_s or world.now_s
        for broker in world.bus.running.values():
            assert {old, given(scenario)} <= broker.accepted_passwords
    scenario.settle()
    check_settled(scenario)
    assert all(broker.accepted_passwords == {given(scenario)} for broker in world.bus.running.values())
    assert replaced(scenario) == []


def given(scenario: Scenario) -> str:
    """Return the password that clients read from the Secret."""
    passwords = scenario.world.observe().passwords
    assert passwords is not None
    return passwords.current


def test_members_keep_their_ids_when_all_pods_are_deleted_at_once() -> None:
    scenario = a_scenario()
    before = node_ids(scenario)
    for name in scenario.pods():
        scenario.world.delete_pod(name, force=True)
    scenario.settle()
    check_settled(scenario)
    assert node_ids(scenario) == before
    assert words(scenario, "CLUSTER", "FORGET") == []


def test_deleted_volume_becomes_a_new_member_and_the_old_one_is_forgotten() -> None:
    scenario = a_scenario(jobs=0)
    before = node_ids(scenario)
    scenario.world.delete_pod("mail-1", force=True)
    scenario.world.delete_claim(1)
    scenario.settle()
    check_settled(scenario)
    assert node_ids(scenario)["mail-1"] != before["mail-1"]
    forgotten = {
        action.words[2] for action in scenario.acted if isinstance(action, Command) and "FORGET" in action.words
    }
    assert forgotten == {before["mail-1"]}


def test_volume_is_drained_before_it_is_deleted() -> None:
    scenario = a_scenario()
    scenario.world.delete_claim(1)
    scenario.settle()
    check_settled(scenario)
    assert replaced(scenario) == ["mail-1"]
    assert not scenario.world.destroyed


def test_disconnected_members_are_connected_when_seeds_do_not_resolve() -> None:
    scenario = a_scenario()
    world = scenario.world
    world.bus.no_seeds_until_s = world.now_s + 10_000
    brokers = list(world.bus.running.values())
    for broker in brokers:
        broker.disk.known.clear()
        broker.forgotten = {other.node_id: world.now_s + 60 for other in brokers if other is not broker}
    scenario.settle()
    check_settled(scenario)
    assert words(scenario, "CLUSTER", "MEET")


def test_members_survive_a_node_that_is_lost_for_minutes() -> None:
    scenario = a_scenario()
    before = node_ids(scenario)
    scenario.world.cut_off["m1"] = scenario.world.now_s + 300
    scenario.run(310)
    assert words(scenario, "CLUSTER", "FORGET") == []
    scenario.settle()
    check_settled(scenario)
    assert node_ids(scenario) == before


def test_hibernated_cluster_resumes_with_other_replicas() -> None:
    scenario = a_scenario(4)
    before = node_ids(scenario)
    scenario.world.edit(hibernate=True)
    scenario.until(lambda: scenario.world.status["phase"] == "Hibernated")
    scenario.settle()
    assert scenario.world.pods == {}
    scenario.world.edit(hibernate=False, replicas=2)
    scenario.settle()
    check_settled(scenario)
    assert node_ids(scenario).items() < before.items()


def test_paused_cluster_is_not_changed_but_its_drain_continues() -> None:
    scenario = a_scenario(jobs=40)
    scenario.world.edit(replicas=2)
    scenario.until(leaves(scenario, "mail-2"))
    scenario.world.edit(paused=True)
    acted = len(scenario.acted)
    scenario.run(100)
    assert len(scenario.acted) == acted
    assert scenario.world.status["phase"] == "Paused"
    assert scenario.world.bus.running["mail-2"].disk.jobs == {}
    scenario.world.edit(paused=False)
    scenario.settle()
    check_settled(scenario)


def test_unschedulable_pods_are_removed_without_a_drain() -> None:
    scenario = a_scenario()
    scenario.world.full = True
    scenario.world.edit(replicas=5)
    scenario.run(60)
    assert scenario.world.status["phase"] == "Degraded"
    scenario.world.edit(replicas=3)
    scenario.settle()
    check_settled(scenario)
    assert words(scenario, "CLUSTER", "LEAVING", "yes") == []
    assert claims(scenario) == [0, 1, 2]


def test_manual_edits_of_children_are_reverted() -> None:
    scenario = a_scenario()
    world = scenario.world
    world.scale_manually(5)
    world.api.delete("Service", "mail")
    world.api.delete("PodDisruptionBudget", "mail")
    scenario.settle()
    check_settled(scenario)
    assert world.api.get("Service", "mail") is not None


def test_deleted_statefulset_is_recreated_with_all_members() -> None:
    scenario = a_scenario()
    before = node_ids(scenario)
    scenario.world.api.delete("StatefulSet", "mail")
    scenario.settle()
    check_settled(scenario)
    assert node_ids(scenario) == before


# --- operator crashes -------------------------------------------------------------------------------------------------


def scale_down(scenario: Scenario) -> None:
    scenario.world.edit(replicas=1)


def upgrade(scenario: Scenario) -> None:
    scenario.world.edit(image="disque:2")


def both(scenario: Scenario) -> None:
    scenario.world.edit(replicas=2, image="disque:2", config={"slowlog-max-len": "64"})


def rotate(scenario: Scenario) -> None:
    scenario.world.edit(auth=scenario.world.spec.auth.model_copy(update={"rotation": 1}))


def hibernate(scenario: Scenario) -> None:
    scenario.world.edit(hibernate=True)
    scenario.until(lambda: scenario.world.pods == {})
    scenario.world.edit(hibernate=False)


CHANGES = [scale_down, upgrade, both, rotate, hibernate]


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_next_operator_continues_after_a_crash_at_any_action(
    change: Callable[[Scenario], None],
) -> None:
    uninterrupted = a_scenario()
    first = len(uninterrupted.acted)
    change(uninterrupted)
    uninterrupted.settle()
    for step in range(first + 1, len(uninterrupted.acted) + 1):
        scenario = a_scenario()
        scenario.crash_after = step
        change(scenario)
        scenario.settle()
        check_settled(scenario)


# --- found by faults --------------------------------------------------------------------------------------------------


def lose_password(scenario: Scenario) -> None:
    """Delete both Secrets with the password."""
    scenario.world.api.delete("Secret", "mail-auth")
    scenario.world.api.delete("Secret", "mail-default-user")


def test_locked_broker_is_restarted_before_its_drain() -> None:
    """Seed 318: everything waited for its drain, and it accepted no command to leave."""
    scenario = a_scenario(5)
    scenario.world.edit(replicas=3)
    lose_password(scenario)
    scenario.run(60)
    scenario.settle()
    check_settled(scenario)


def test_locked_drained_broker_does_not_block_other_restarts() -> None:
    """Seed 307: it was not ready because it was leaving, and it accepted no command to stay."""
    scenario = a_scenario(5)
    scenario.world.pods["mail-3"].drain = True
    scenario.until(leaves(scenario, "mail-3"))
    lose_password(scenario)
    scenario.run(60)
    scenario.settle()
    check_settled(scenario)


# --- random faults ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(1, 13))
def test_cluster_settles_after_faults(seed: int) -> None:
    run_faults(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_ephemeral_cluster_settles_after_faults(seed: int) -> None:
    run_faults(seed, ephemeral=True)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("first", range(100, 300, 20))
def test_many_clusters_settle_after_faults(first: int) -> None:
    for seed in range(first, first + 20):
        run_faults(seed, ephemeral=seed % 4 == 0)
