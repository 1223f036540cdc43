"""The manifests of Spark jobs are consistent, and run the same jobs with spark-submit and with the Spark operator."""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from disqued import __version__

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "manifests" / "spark"
Json = dict[str, Any]
JOBS = ("enqueue", "drain")
SUBMIT_ONLY = {
    "spark.kubernetes.authenticate.driver.serviceAccountName",
    "spark.kubernetes.authenticate.executor.serviceAccountName",
    "spark.kubernetes.driver.podTemplateFile",
    "spark.kubernetes.executor.podTemplateFile",
    "spark.kubernetes.report.interval",
}
"""Settings that the Spark operator replaces by fields, or does not use."""
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def documents(name: str) -> list[Json]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def submitter(name: str) -> Json:
    """Return the pod that submits a job."""
    return dict(documents(f"{name}.yaml")[0]["spec"]["template"]["spec"])


def words(name: str) -> tuple[dict[str, str], str, list[str]]:
    """Return the settings, file and arguments of a job that a pod submits."""
    args = submitter(name)["containers"][0]["args"]
    at = next(number for number, word in enumerate(args) if word.startswith("local://"))
    settings = [word.removeprefix("--conf=").partition("=") for word in args[:at] if word.startswith("--conf=")]
    return {name: value for name, _, value in settings}, args[at], args[at + 1 :]


def application(name: str) -> Json:
    """Return the same job for the Spark operator."""
    (found,) = documents(f"spark-operator/{name}.yaml")
    return dict(found["spec"]["template"] if found["kind"] == "ScheduledSparkApplication" else found["spec"])


def settings() -> dict[str, str]:
    lines = (FOLDER / "spark-defaults.conf").read_text().splitlines()
    return {line.split()[0]: line.split()[1] for line in lines if line and not line.startswith("#")}


def test_images_and_spark_have_the_current_versions() -> None:
    text = "".join(path.read_text() for path in FOLDER.rglob("*.yaml"))
    assert set(re.findall(r"disqued-spark:([\w.]+)", text)) == {__version__}
    lock = (ROOT / "requirements.lock").read_text()
    (version,) = re.findall(r"^pyspark==(\S+)", lock, re.MULTILINE)
    assert {application(name)["sparkVersion"] for name in JOBS} == {version}


def test_kustomization_has_existing_files_and_the_settings_of_jobs() -> None:
    (found,) = documents("kustomization.yaml")
    (settings_map,) = found["configMapGenerator"]
    assert all((FOLDER / name).exists() for name in [*found["resources"], *settings_map["files"]])
    for name in JOBS:
        volumes = {volume["name"]: volume for volume in submitter(name)["volumes"]}
        assert volumes["settings"]["configMap"]["name"] == settings_map["name"]
        mounts = {mount["name"]: mount["mountPath"] for mount in submitter(name)["containers"][0]["volumeMounts"]}
        templates = {value for key, value in settings().items() if key.endswith("podTemplateFile")}
        assert templates == {f"{mounts['settings']}/{role}.yaml" for role in ("driver", "executor")}


def test_referenced_service_accounts_exist_and_are_bound() -> None:
    objects = documents("rbac.yaml")
    accounts = {item["metadata"]["name"] for item in objects if item["kind"] == "ServiceAccount"}
    named = {value for key, value in settings().items() if key.endswith("serviceAccountName")}
    named |= {submitter(name)["serviceAccountName"] for name in JOBS}
    named |= {application(name)[role]["serviceAccount"] for name in JOBS for role in ("driver", "executor")}
    assert named == accounts
    bound = {item["subjects"][0]["name"]: item["roleRef"]["name"] for item in objects if item["kind"] == "RoleBinding"}
    assert bound == {"spark-submit": "spark-submit", "spark-driver": "spark-driver"}


def test_roles_grant_neither_wildcards_nor_secrets() -> None:
    for role in documents("rbac.yaml"):
        for rule in role.get("rules", []):
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
            assert not {"secrets", "pods/exec", "pods/log"} & set(rule["resources"])


@pytest.mark.parametrize("name", JOBS)
def test_spark_submit_and_spark_operator_run_the_same_job(name: str) -> None:
    conf, file, arguments = words(name)
    other = application(name)
    assert other["mainApplicationFile"] == file
    assert other["arguments"] == arguments
    shared = {key: value for key, value in settings().items() if key not in SUBMIT_ONLY}
    shared |= {key: value for key, value in conf.items() if ".secrets." in key or ".volumes." in key}
    assert other["sparkConf"] == shared
    for role in ("driver", "executor"):
        assert other[role]["memory"] == conf[f"spark.{role}.memory"]
    assert str(other["executor"]["instances"]) == conf["spark.executor.instances"]


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("role", ["driver", "executor"])
def test_spark_submit_and_spark_operator_create_the_same_pods(name: str, role: str) -> None:
    (pod,) = documents(f"{role}.yaml")
    template = application(name)[role]["template"]
    assert template["spec"] == pod["spec"]
    assert template["metadata"]["labels"] == pod["metadata"]["labels"]


@pytest.mark.parametrize("name", JOBS)
def test_pods_are_restricted(name: str) -> None:
    specs = [submitter(name), *(documents(f"{role}.yaml")[0]["spec"] for role in ("driver", "executor"))]
    for spec in specs:
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["containers"][0]["securityContext"] == RESTRICTED


@pytest.mark.parametrize("name", JOBS)
def test_pipeline_accepts_the_arguments(name: str) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    module = __import__(f"pipelines.{name}", fromlist=["parser"])
    _, file, arguments = words(name)
    assert file == f"local:///opt/disque/pipelines/{name}.py"
    parser: argparse.ArgumentParser = module.parser()
    assert parser.parse_args(arguments).nodes == "jobs:7711"


def test_password_file_is_in_the_mounted_secret() -> None:
    for name in JOBS:
        conf, _, arguments = words(name)
        mounts = {value for key, value in conf.items() if key.endswith(".secrets.jobs-default-user")}
        assert arguments[1] == f"--password-file={mounts.pop()}/password"
        assert not mounts


def test_guide_shows_how_drivers_and_executors_get_certificates() -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    from pipelines.command import connector_options  # noqa: PLC0415 - needs PySpark
    from pipelines.enqueue import parser  # noqa: PLC0415 - needs PySpark
    from pyspark_disque.options import parse  # noqa: PLC0415 - needs PySpark

    guide = (ROOT / "docs" / "howto" / "spark-on-kubernetes.md").read_text()
    section = guide.partition("## Brokers with TLS\n")[2].partition("\n## ")[0]
    shown: list[str] = yaml.safe_load(section.partition("```yaml\n")[2].partition("```")[0])
    at = next(number for number, word in enumerate(shown) if word.startswith("local://"))
    mounts = dict(word.removeprefix("--conf=spark.kubernetes.").split("=") for word in shown[:at])
    assert set(mounts) == {f"{role}.secrets.jobs-tls" for role in ("driver", "executor")}
    (mount,) = set(mounts.values())
    made = set(re.findall(r"--from-file=(\S+)", section))

    conf, _, arguments = words("enqueue")
    others = [word for word in arguments if not word.startswith(("--nodes", "--password-file"))]
    options = parse(connector_options(parser().parse_args([*shown[at + 1 :], *others]), "write"), "write")
    assert options.tls
    assert set(options.tls_files().values()) == {f"{mount}/{name}" for name in made}
    assert mount not in conf.values(), "another Secret is mounted there"


def test_wheel_contains_the_pipelines() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "spark/pipelines" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def test_pod_monitor_selects_labels_of_drivers() -> None:
    (monitor,) = documents("podmonitor.yaml")
    labels = documents("driver.yaml")[0]["metadata"]["labels"]
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.pop("spark-role") == "driver"
    assert wanted.items() <= labels.items()
    paths = [endpoint["path"] for endpoint in monitor["spec"]["podMetricsEndpoints"]]
    assert paths == ["/metrics/prometheus/", "/metrics/executors/prometheus/"]
