"""A new cluster that is made of a backup: each member is restored once, from the same backup, before it starts."""

from __future__ import annotations

from typing import Any

import pytest

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.backupspec import BackupStore, Bootstrap, FromBackup
from disque_operator.bootstrap import RETRY_S
from disque_operator.spec import Spec
from support.kubeworld.scenario import FaultRates, Scenario, a_spec, check_settled
from support.kubeworld.values import condition

STORE = BackupStore(url="s3://backups", secret_name="s3")
JOBS = {f"old-{number}": 1 + number % 3 for number in range(20)}


def restored(replicas: int = 3, name: str = "latest", **fields: Any) -> Spec:
    source = FromBackup(store=fields.pop("store", STORE), name=name)
    return a_spec(replicas=replicas, bootstrap=Bootstrap(from_backup=source), **fields)


def a_scenario(replicas: int = 3, *, rates: FaultRates | None = None, seed: int = 1, **fields: Any) -> Scenario:
    """Return a scenario whose store has two backups."""
    scenario = Scenario(restored(replicas, **fields), seed, rates or FaultRates(), load=False)
    scenario.world.jobs.backups = {"first": {"older": 1}, "second": dict(JOBS)}
    scenario.world.accepted = set(JOBS)
    return scenario


def copies(scenario: Scenario) -> dict[str, int]:
    """Return how many members have each job."""
    found: dict[str, int] = {}
    for disk in scenario.world.disks.values():
        for job in disk.jobs:
            found[job] = found.get(job, 0) + 1
    return found


def claims(scenario: Scenario) -> list[tuple[str, str]]:
    """Return which backup was restored to which claim."""
    return sorted(scenario.world.jobs.restored)


def jobs(scenario: Scenario) -> list[str]:
    return [name for (kind, name) in scenario.world.api.objects if kind == "Job"]


def expected(replicas: int) -> dict[str, int]:
    return {job: min(count, replicas) for job, count in JOBS.items()}


@pytest.mark.parametrize("replicas", [1, 2, 5])
def test_new_cluster_of_any_size_has_each_job_of_the_latest_backup(replicas: int) -> None:
    scenario = a_scenario(replicas)
    scenario.settle()
    check_settled(scenario)
    assert copies(scenario) == expected(replicas)
    assert len(claims(scenario)) == replicas
    status = scenario.world.status["bootstrap"]
    assert (status["backup"], status["members"]) == ("second", replicas)
    assert "completedAt" in status
    assert jobs(scenario) == []
    assert scenario.world.lost() == set()


def test_no_pod_starts_before_all_members_are_restored() -> None:
    scenario = a_scenario()
    scenario.world.jobs.failure, scenario.world.jobs.failing_name = "not yet", "mail-restore-2"
    scenario.until(lambda: len(claims(scenario)) == 2)
    assert scenario.world.stateful_set() is None
    assert condition(scenario.world.status, "Progressing") == ("True", "RestoringBackup")
    assert condition(scenario.world.status, "Ready") == ("False", "NoPods")


def test_a_backup_can_be_named() -> None:
    scenario = a_scenario(name="first")
    scenario.settle()
    assert copies(scenario) == {"older": 1}


def test_all_members_restore_the_same_backup_although_a_newer_one_is_made() -> None:
    scenario = a_scenario()
    scenario.until(lambda: bool(claims(scenario)) or bool(scenario.world.status.get("bootstrap")))
    scenario.world.jobs.backups["third"] = {"newer": 1}
    scenario.settle()
    assert {backup for backup, _ in claims(scenario)} == {"second"}
    assert copies(scenario) == expected(3)


def test_same_backup_is_restored_when_the_status_is_lost() -> None:
    scenario = a_scenario()
    scenario.until(lambda: bool(claims(scenario)))
    scenario.world.jobs.backups["third"] = {"newer": 1}
    scenario.world.status = {}
    scenario.settle()
    assert {backup for backup, _ in claims(scenario)} == {"second"}


@pytest.mark.parametrize("replicas", [1, 5])
def test_other_number_of_members_during_the_restore_applies_after_it(replicas: int) -> None:
    scenario = a_scenario(3)
    scenario.until(lambda: bool(claims(scenario)))
    scenario.world.edit(replicas=replicas)
    scenario.finish(replicas)
    scenario.settle()
    check_settled(scenario)
    assert scenario.world.status["bootstrap"]["members"] == 3
    assert len(claims(scenario)) == 3
    assert set(copies(scenario)) >= set(JOBS) - scenario.world.bus.acknowledged


def test_store_on_a_volume_is_used_by_one_pod_at_a_time() -> None:
    scenario = a_scenario(store=BackupStore(claim_name="backups"))
    most = 0

    def done() -> bool:
        nonlocal most
        running = [run for run in scenario.world.observe().runs if run.state == "Running"]
        most = max(most, len(running))
        return scenario.world.stateful_set() is not None

    scenario.until(done)
    assert most == 1
    assert len(claims(scenario)) == 3


@pytest.mark.parametrize("job", ["mail-find", "mail-restore-1"])
def test_failure_is_reported_and_tried_again(job: str) -> None:
    scenario = a_scenario()
    scenario.world.jobs.failure, scenario.world.jobs.failing_name = "access denied", job
    scenario.run(int(2 * RETRY_S) + 40)
    assert condition(scenario.world.status, "Degraded") == ("True", "RestoreFailed")
    assert f"{job}: access denied" in scenario.world.status["message"]
    assert scenario.world.stateful_set() is None
    reasons = [event.reason for event in scenario.events if event.type == "Warning"]
    assert reasons == ["RestoreFailed"]
    scenario.world.jobs.failure = ""
    scenario.settle()
    check_settled(scenario)
    assert copies(scenario) == expected(3)


def test_backup_that_does_not_exist_is_reported() -> None:
    scenario = a_scenario(name="other")
    scenario.run(30)
    assert "other does not exist" in scenario.world.status["message"]


def test_result_that_was_lost_with_its_pod_is_found_again() -> None:
    scenario = a_scenario()
    scenario.world.jobs.reports = False
    scenario.run(20)
    scenario.world.jobs.reports = True
    scenario.settle()
    assert copies(scenario) == expected(3)


def test_volumes_of_an_earlier_cluster_are_not_touched() -> None:
    scenario = a_scenario()
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-mail-0", "labels": names.labels("mail")},
        "spec": {"resources": {"requests": {"storage": "2Gi"}}},
        "status": {"phase": "Bound"},
    }
    scenario.world.api.put(claim)
    scenario.run(60)
    assert condition(scenario.world.status, "Degraded") == ("True", "VolumesExist")
    assert jobs(scenario) == []
    scenario.world.delete_claim(0)
    scenario.settle()
    assert copies(scenario) == expected(3)


def test_volume_that_is_lost_during_the_restore_is_restored_again() -> None:
    scenario = a_scenario()
    scenario.world.jobs.failure, scenario.world.jobs.failing_name = "not yet", "mail-restore-2"
    scenario.until(lambda: len(claims(scenario)) == 2)
    scenario.world.delete_claim(0)
    scenario.run(10)
    scenario.world.jobs.failure = ""
    scenario.settle()
    check_settled(scenario)
    assert copies(scenario) == expected(3)


def test_nothing_is_restored_again_when_a_member_loses_its_volume_or_the_stateful_set_is_deleted() -> None:
    scenario = a_scenario()
    scenario.settle()
    before = claims(scenario)
    scenario.world.delete_claim(1)
    scenario.world.delete_pod("mail-1")
    scenario.settle()
    scenario.world.api.delete("StatefulSet", "mail")
    scenario.world.changed = True
    scenario.settle()
    scenario.world.edit(replicas=4)
    scenario.settle()
    check_settled(scenario)
    assert claims(scenario) == before


def template(spec: Spec) -> Json:
    """Return the pod template of a cluster when its StatefulSet is created."""
    scenario = a_scenario()
    scenario.world.spec = spec
    scenario.until(lambda: scenario.world.stateful_set() is not None)
    found: Json = scenario.world.api.objects["StatefulSet", "mail"]["spec"]["template"]
    return found


def test_pods_have_nothing_of_the_restore() -> None:
    assert template(restored()) == template(a_spec())


def test_hibernating_cluster_is_restored_to_its_volumes() -> None:
    scenario = a_scenario(hibernate=True)
    scenario.run(120)
    assert copies(scenario) == expected(3)
    assert scenario.world.status["phase"] == "Hibernated"
    scenario.world.edit(hibernate=False)
    scenario.settle()
    check_settled(scenario)
    assert copies(scenario) == expected(3)


@pytest.mark.parametrize("seed", range(12))
def test_each_member_is_restored_once_although_the_operator_crashes(seed: int) -> None:
    scenario = a_scenario(3, seed=seed, rates=FaultRates(crash=0.2, stale=0.2, conflict=0.1))
    scenario.until(lambda: scenario.world.stateful_set() is not None)
    scenario.rates = FaultRates()
    scenario.settle()
    check_settled(scenario)
    assert [claim for _, claim in claims(scenario)] == [f"data-mail-{ordinal}" for ordinal in range(3)]
    assert copies(scenario) == expected(3)
