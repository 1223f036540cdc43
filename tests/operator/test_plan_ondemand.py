"""DisqueBackups: each is made once, one after another, and says what became of it."""

from __future__ import annotations

from typing import Any

import pytest

from disque_operator import names
from disque_operator.apivalues import Json, condition_of
from disque_operator.backupspec import Backup, BackupStore
from disque_operator.declared import without_cluster
from support.kubeworld.scenario import FaultRates, Scenario, a_spec, check_settled

STORE = BackupStore(url="s3://backups", secret_name="s3")
OTHER = {"url": "s3://others"}


def a_cluster(**fields: Any) -> Scenario:
    scenario = Scenario(a_spec(**({"backup": Backup(store=STORE)} | fields)), load=False)
    scenario.settle()
    assert scenario.add()
    return scenario


def ask(scenario: Scenario, name: str = "now", **spec: Any) -> None:
    metadata = {"name": name, "namespace": scenario.world.spec.namespace, "creationTimestamp": "2027-01-01"}
    body = {"clusterRef": {"name": scenario.world.spec.name}, **spec}
    scenario.world.api.put(
        {"apiVersion": names.API_VERSION, "kind": names.BACKUP_KIND, "metadata": metadata, "spec": body}
    )
    scenario.world.changed = True


def status(scenario: Scenario, name: str = "now") -> Json:
    live = scenario.world.api.get(names.BACKUP_KIND, name)
    assert live is not None
    found: Json = live.get("status") or {}
    return found


def reason(scenario: Scenario, name: str = "now") -> str:
    return str(condition_of(status(scenario, name), "Completed").get("reason"))


def job(scenario: Scenario, name: str = "now") -> Json | None:
    return scenario.world.api.get("Job", names.backup_job(name))


def test_backup_is_made_once_and_stays_reported_when_its_job_is_gone() -> None:
    scenario = a_cluster()
    ask(scenario)
    scenario.run(3)
    assert (status(scenario)["phase"], reason(scenario)) == ("Running", "Running")
    scenario.run(20)
    made = status(scenario)
    [name] = scenario.world.jobs.backups
    assert (made["phase"], made["backupName"], made["jobs"]) == ("Completed", name, 1)
    assert made["jobName"] == "now-disque-backup"
    scenario.world.api.delete("Job", "now-disque-backup")
    scenario.settle()
    check_settled(scenario)
    assert list(scenario.world.jobs.backups) == [name]
    assert status(scenario) == made
    assert "backup" not in scenario.world.status, "only scheduled backups count for BackedUp"


def test_job_belongs_to_the_resource_and_uses_its_store() -> None:
    scenario = a_cluster()
    ask(scenario, store=OTHER)
    scenario.run(2)
    live, resource = job(scenario), scenario.world.api.get(names.BACKUP_KIND, "now")
    assert live is not None
    assert resource is not None
    assert live["metadata"]["ownerReferences"][0]["uid"] == resource["metadata"]["uid"]
    container = live["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][:4] == ["create", "s3://others", "--cluster", "prod.mail"]
    assert "--prune-days" not in container["args"]
    assert "envFrom" not in container


def test_backups_are_made_one_after_another() -> None:
    scenario = a_cluster()
    for name in ("one", "two"):
        ask(scenario, name)
    scenario.run(3)
    assert (reason(scenario, "one"), reason(scenario, "two")) == ("Running", "OtherBackup")
    assert job(scenario, "two") is None
    scenario.settle()
    assert [status(scenario, name)["phase"] for name in ("one", "two")] == ["Completed", "Completed"]
    assert len(scenario.world.jobs.backups) == 2


def test_backup_waits_for_a_scheduled_one() -> None:
    scenario = a_cluster(backup=Backup(store=STORE, schedule="0 2 * * *"))
    scheduled = scenario.world.jobs.schedule("mail", scenario.world.now_s)
    ask(scenario)
    scenario.run(3)
    assert reason(scenario) == "OtherBackup"
    assert job(scenario) is None
    scenario.settle()
    assert scenario.world.api.objects["Job", scheduled]["status"]["completionTime"]
    assert status(scenario)["phase"] == "Completed"


def test_failed_backup_says_why_and_is_not_made_again() -> None:
    scenario = a_cluster()
    scenario.world.jobs.failure = "access denied"
    ask(scenario)
    scenario.settle()
    assert (status(scenario)["phase"], status(scenario)["message"]) == ("Failed", "access denied")
    scenario.world.jobs.failure = ""
    scenario.run(120)
    assert status(scenario)["phase"] == "Failed"
    assert scenario.world.jobs.backups == {}


def test_backup_without_a_store_waits_for_one() -> None:
    scenario = a_cluster(backup=None)
    ask(scenario)
    scenario.settle()
    assert (status(scenario)["phase"], reason(scenario)) == ("Pending", "NoStore")
    scenario.world.edit(backup=Backup(store=STORE))
    scenario.settle()
    assert status(scenario)["phase"] == "Completed"


def test_backup_of_a_hibernating_cluster_waits_until_it_wakes() -> None:
    scenario = a_cluster(hibernate=False)
    scenario.world.edit(hibernate=True)
    scenario.settle()
    ask(scenario)
    scenario.run(60)
    assert (status(scenario)["phase"], reason(scenario)) == ("Pending", "NoMembers")
    scenario.world.edit(hibernate=False)
    scenario.settle()
    assert status(scenario)["phase"] == "Completed"


def test_backup_is_complete_although_its_result_is_lost() -> None:
    scenario = a_cluster()
    scenario.world.jobs.reports = False
    ask(scenario)
    scenario.run(60)
    assert (status(scenario)["phase"], status(scenario)["backupName"]) == ("Completed", "")


@pytest.mark.parametrize(
    ("phase", "reason"),
    [("Completed", None), ("Failed", None), ("Pending", "ClusterNotFound"), ("", "ClusterNotFound")],
)
def test_result_stays_when_the_cluster_is_deleted(phase: str, reason: str | None) -> None:
    resource = {"kind": names.BACKUP_KIND, "metadata": {"name": "now"}, "spec": {}, "status": {"phase": phase}}
    found = without_cluster(resource, 1_800_000_000.0)
    assert found["phase"] == phase
    assert condition_of(found, "Completed").get("reason") == reason


@pytest.mark.parametrize("seed", range(6))
def test_each_backup_is_made_once_although_the_operator_crashes(seed: int) -> None:
    scenario = Scenario(a_spec(backup=Backup(store=STORE)), seed, load=False)
    scenario.settle()
    scenario.rates = FaultRates(crash=0.3, stale=0.2, conflict=0.2)
    for number in range(3):
        ask(scenario, f"b{number}")
    scenario.until(lambda: all(status(scenario, f"b{number}").get("phase") == "Completed" for number in range(3)))
    assert len(scenario.world.jobs.backups) == 3
