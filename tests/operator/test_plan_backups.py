"""Scheduled backups: the CronJob, what the status says about the last backup, and the condition BackedUp."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from disque_operator.apivalues import Json, condition_of
from disque_operator.backupspec import Backup, BackupStore
from disque_operator.metrics import Metrics
from disque_operator.resources import differs
from support.kubeworld.scenario import FaultRates, Scenario, a_spec, check_settled, recover
from support.kubeworld.values import at_rest, changed, decided, reported

STORE = BackupStore(url="s3://backups", secret_name="s3")
CRON_JOB = "mail-backup"


def nightly(**fields: Any) -> Backup:
    return Backup(store=STORE, **{"schedule": "0 2 * * *", "max_age_s": 3600, **fields})


def a_cluster(**fields: Any) -> Scenario:
    scenario = Scenario(a_spec(backup=nightly(**fields)), load=False)
    scenario.settle()
    assert scenario.add()
    return scenario


def back_up(scenario: Scenario, failure: str = "") -> str:
    """Let the CronJob make a backup."""
    scenario.world.jobs.failure = failure
    name = scenario.world.jobs.schedule("mail", scenario.world.now_s)
    scenario.run(10)
    return name


def backed_up(scenario: Scenario) -> tuple[str, str]:
    found = condition_of(scenario.world.status, "BackedUp")
    return found["status"], found["reason"]


def of_status(scenario: Scenario) -> Json:
    found: Json = scenario.world.status.get("backup") or {}
    return found


def events(scenario: Scenario) -> list[str]:
    return [event.reason for event in scenario.events if event.reason.startswith("Backup")]


def test_cluster_without_a_schedule_has_no_cron_job_and_no_condition() -> None:
    view = at_rest()
    assert condition_of(view.observed.status, "BackedUp") == {}
    assert decided(changed(view, backup=Backup(store=STORE))) == []
    assert decided(changed(view, backup=nightly())) == [f"apply CronJob {CRON_JOB}"]


def test_cron_job_is_restored_and_deleted_with_the_schedule() -> None:
    scenario = a_cluster()
    live = scenario.world.api.get("CronJob", CRON_JOB)
    assert live is not None
    live["spec"]["schedule"] = "* * * * *"
    scenario.world.api.touch(live)
    scenario.settle()
    assert scenario.world.api.objects["CronJob", CRON_JOB]["spec"]["schedule"] == "0 2 * * *"
    scenario.world.edit(backup=None)
    scenario.settle()
    check_settled(scenario)
    assert scenario.world.api.get("CronJob", CRON_JOB) is None
    assert condition_of(scenario.world.status, "BackedUp") == {}


def test_a_backup_restarts_no_pod() -> None:
    scenario = Scenario(a_spec(), load=False)
    scenario.settle()
    pods = {pod.uid for pod in scenario.world.pods.values()}
    scenario.world.edit(backup=nightly())
    scenario.settle()
    assert {pod.uid for pod in scenario.world.pods.values()} == pods


def test_status_shows_the_last_backup_after_its_job_is_gone() -> None:
    scenario = a_cluster()
    assert backed_up(scenario) == ("False", "NoneYet")
    job = back_up(scenario)
    assert backed_up(scenario) == ("True", "Recent")
    made = of_status(scenario)
    assert made["lastName"] == list(scenario.world.jobs.backups)[-1]
    assert made["lastJobs"] == len(scenario.world.jobs.backups[made["lastName"]])
    scenario.world.api.delete("Job", job)
    scenario.world.api.delete("Pod", f"{job}-pod")
    scenario.run(60)
    assert of_status(scenario) == made
    assert events(scenario) == ["BackupCompleted"]


def test_time_is_known_although_the_pod_is_gone() -> None:
    scenario = a_cluster()
    scenario.world.jobs.reports = False
    back_up(scenario)
    assert backed_up(scenario) == ("True", "Recent")
    assert list(of_status(scenario)) == ["lastSuccessTime"]


def test_name_is_read_from_a_pod_that_is_seen_after_its_job() -> None:
    scenario = a_cluster()
    job = back_up(scenario)
    made = of_status(scenario)
    pod = scenario.world.api.get("Pod", f"{job}-pod")
    assert pod is not None
    scenario.world.status = {**scenario.world.status, "backup": {"lastSuccessTime": made["lastSuccessTime"]}}
    scenario.run(40)
    assert of_status(scenario) == made


def test_failure_is_reported_until_a_backup_is_made() -> None:
    scenario = a_cluster()
    back_up(scenario, "cannot write to s3://backups: access denied")
    assert backed_up(scenario) == ("False", "LastFailed")
    assert "access denied" in condition_of(scenario.world.status, "BackedUp")["message"]
    back_up(scenario)
    assert backed_up(scenario) == ("True", "Recent")
    assert "lastFailureTime" not in of_status(scenario)
    back_up(scenario, "cannot connect")
    assert backed_up(scenario) == ("True", "LastFailed")
    assert events(scenario) == ["BackupFailed", "BackupCompleted", "BackupFailed"]
    scenario.settle()
    check_settled(scenario)


@pytest.mark.parametrize("first", [True, False])
def test_backup_is_too_old_when_none_was_made_for_longer_than_the_limit(first: bool) -> None:
    scenario = a_cluster(max_age_s=1200)
    if first:
        back_up(scenario)
    scenario.run(600)
    assert backed_up(scenario)[1] == ("Recent" if first else "NoneYet")
    scenario.run(700)
    assert backed_up(scenario) == ("False", "TooOld")
    assert scenario.world.status["phase"] == "Running"


def test_suspended_schedule_is_no_old_backup() -> None:
    scenario = a_cluster(max_age_s=60, suspend=True)
    scenario.run(300)
    assert backed_up(scenario) == ("False", "Suspended")
    scenario.world.edit(backup=nightly(max_age_s=60), hibernate=True)
    scenario.settle()
    scenario.run(300)
    assert backed_up(scenario) == ("False", "Suspended")
    assert scenario.world.api.objects["CronJob", CRON_JOB]["spec"]["suspend"] is True


def test_metrics_show_the_last_backup() -> None:
    scenario = a_cluster()
    metrics = Metrics()
    labels = {"namespace": "prod", "cluster": "mail"}
    name = "disque_operator_backup_last_success_timestamp_seconds"
    metrics.cluster("prod", "mail", scenario.world.status, paused=False)
    assert metrics.registry.get_sample_value(name, labels) is None
    back_up(scenario)
    metrics.cluster("prod", "mail", scenario.world.status, paused=False)
    assert scenario.world.now_s - (metrics.registry.get_sample_value(name, labels) or 0.0) < 60
    jobs = metrics.registry.get_sample_value("disque_operator_backup_last_jobs", labels)
    assert jobs == of_status(scenario)["lastJobs"]
    metrics.forget("prod", "mail")
    assert metrics.registry.get_sample_value(name, labels) is None


def test_zone_that_does_not_exist_is_reported() -> None:
    view = changed(at_rest(), backup=nightly(time_zone="Mars/Olympus"))
    assert reported(view, "SpecValid") == ("False", "Invalid")


def test_defaults_of_the_api_server_are_no_difference() -> None:
    scenario = a_cluster()
    live = scenario.world.api.objects["CronJob", CRON_JOB]
    manifest = copy.deepcopy(live)
    live["spec"]["jobTemplate"]["spec"]["template"]["spec"]["dnsPolicy"] = "ClusterFirst"
    live["spec"]["jobTemplate"]["spec"]["template"]["spec"]["volumes"][0]["secret"]["defaultMode"] = 420
    assert differs(manifest, live) == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_cluster_with_backups_settles_after_faults(seed: int) -> None:
    scenario = Scenario(a_spec(backup=nightly()), seed)
    scenario.settle()
    scenario.rates = FaultRates(crash=0.1, stale=0.1, conflict=0.05, fault=0.06)
    for _ in range(6):
        scenario.run(60)
        if scenario.world.api.get("CronJob", CRON_JOB) is not None:
            scenario.world.jobs.schedule("mail", scenario.world.now_s)
    recover(scenario)
    back_up(scenario)
    scenario.settle()
    check_settled(scenario)
    assert backed_up(scenario)[0] == "True"
