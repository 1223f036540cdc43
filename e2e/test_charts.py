"""The charts on a real Kubernetes: what they render to is valid, and they install, test, upgrade, roll back and go."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.support import operators
from e2e.support.brokers import poll
from e2e.support.cluster import SMALL, DisqueCluster
from e2e.support.helm import CLUSTER, OPERATOR, RefusedError, Release, rendered, run
from e2e.support.kube import Json, Kube
from e2e.support.settings import Settings

pytestmark = [
    pytest.mark.skipif(
        not (shutil.which("helm") and shutil.which("kubectl")), reason="helm or kubectl is not installed"
    ),
    pytest.mark.usefixtures("operator"),  # also for the resource definition, which Helm and kubectl have to know
]

DEFINITION = "disqueclusters.disque.dev"
MONITORING = "monitoring.coreos.com/v1"
MONITORS = [f"--api-versions={MONITORING}/{kind}" for kind in ("PodMonitor", "PrometheusRule", "ServiceMonitor")]
NEW_FIELD = "priorityClassName"
"""What the resource definition of the older chart lacks."""
MODES = [
    pytest.param(chart, values, id=f"{chart.name}-{values.name.removesuffix('-values.yaml')}")
    for chart in (OPERATOR, CLUSTER)
    for values in sorted(chart.glob("ci/*-values.yaml"))
]
GONE_S = 60


def cluster_values(settings: Settings, **values: Any) -> Json:
    small: Json = {"resources": SMALL, "storage": {"size": "64Mi"}, "upgrade": {"soakSeconds": 2}}
    image: Json = {"image": settings.image, "imagePullPolicy": "IfNotPresent"}
    return small | image | {"fullnameOverride": "shop"} | values


def operator_values(settings: Settings, **values: Any) -> Json:
    repository, _, tag = settings.operator_image.rpartition(":")
    return {"image": {"repository": repository, "tag": tag}} | values


def definition_fields(kube: Kube) -> Json:
    definition = kube.get("CustomResourceDefinition", DEFINITION)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    fields: Json = schema["properties"]["spec"]["properties"]
    return fields


@pytest.fixture
def older_chart(tmp_path: Path) -> Path:
    """The operator's chart as a former release may have been: a field less in the resource definition."""
    chart = tmp_path / "older"
    shutil.copytree(OPERATOR, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text()) | {"version": "0.0.1"}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
    path = chart / "files" / "crd" / "disqueclusters.yaml"
    definition = yaml.safe_load(path.read_text())
    del definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][NEW_FIELD]
    path.write_text(yaml.safe_dump(definition))
    return chart


@pytest.fixture
def no_operator(kube: Kube, operator: Json) -> Iterator[None]:
    """The operator of the other tests is away, and afterwards all is as it was."""
    with operators.away(kube, operator):
        yield
        for manifest in operators.documents(operators.CRDS):
            kube.apply(manifest)


@pytest.mark.parametrize(("chart", "values"), MODES)
def test_the_api_server_takes_what_is_rendered(namespace: str, chart: Path, values: Path) -> None:
    given = yaml.safe_load(values.read_text())
    watched = ["--set", f"watch.namespaces={{{namespace}}}"] if "watch" in given else []
    shown = ["--set", f"dashboards.namespace={namespace}"] if "dashboards" in given else []
    objects = [
        item
        for item in rendered(chart, values, namespace, *MONITORS, *watched, *shown)
        if not item["apiVersion"].startswith(MONITORING)
    ]
    assert objects
    said = run(
        "kubectl",
        *("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "--filename", "-"),
        given=yaml.safe_dump_all(objects),
    )
    assert said.count("serverside-applied") == len(objects)


def test_a_cluster_is_installed_tested_grown_rolled_back_and_uninstalled(
    kube: Kube, namespace: str, settings: Settings
) -> None:
    cluster = DisqueCluster(kube, namespace, "shop", settings.image)
    with Release(namespace, "mail") as release:
        notes = release.install(CLUSTER, cluster_values(settings, replicas=2))
        assert f"helm test mail -n {namespace}" in notes
        assert "was added, fetched and acknowledged" in release.test(), "right after the installation: it waits"
        cluster.wait_running(2)
        uids = [cluster.uid(ordinal) for ordinal in (0, 1)]

        release.install(CLUSTER, cluster_values(settings, replicas=3))
        cluster.wait_running(3)
        release.test()
        release.rollback()
        cluster.wait_running(2)
        assert [cluster.uid(ordinal) for ordinal in (0, 1)] == uids

    poll(lambda: not cluster.pods() and not kube.all("Service", namespace), "all is gone but the volumes", GONE_S)
    assert cluster.claims() == {"data-shop-0", "data-shop-1"}
    left = [pod["metadata"]["name"] for pod in kube.all("Pod", namespace)]
    assert left == ["shop-test"], "Helm takes no hooks away, and its log can still be read"


def test_a_cluster_without_a_password_and_one_with_its_own_secret_are_tested(
    kube: Kube, namespace: str, settings: Settings
) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": namespace}}
    kube.create(secret | {"stringData": {"password": "a password of mine"}})
    for name, auth in (("open", {"enabled": False}), ("closed", {"secretName": "mine"})):
        with Release(namespace, name) as release:
            values = cluster_values(settings, fullnameOverride=name, replicas=1, auth=auth, service={"port": 7000})
            release.install(CLUSTER, values)
            assert f"{name}.{namespace}.svc:7000" in release.test()


def test_what_only_the_api_server_knows_is_told_by_helm(namespace: str, settings: Settings) -> None:
    with Release(namespace, "mail") as release, pytest.raises(RefusedError, match="lower minReplicas too"):
        release.install(CLUSTER, cluster_values(settings, replicas=2, minReplicas=3))


@pytest.mark.alone
@pytest.mark.usefixtures("no_operator")
def test_the_operator_is_upgraded_with_its_resource_definition_and_clusters_outlive_it(
    kube: Kube, namespaces: Callable[[], str], settings: Settings, older_chart: Path
) -> None:
    place, home = namespaces(), namespaces()
    cluster = DisqueCluster(kube, home, "shop", settings.image)
    with Release(place, "system") as release:
        release.install(older_chart, operator_values(settings), "--take-ownership", "--wait")
        assert NEW_FIELD not in definition_fields(kube)
        cluster.create(replicas=2)
        cluster.wait_running(2)
        uids = [cluster.uid(ordinal) for ordinal in (0, 1)]

        release.install(OPERATOR, operator_values(settings), "--wait")
        assert NEW_FIELD in definition_fields(kube)
        poll(partial(has_metrics, place), "the operator's metrics are read through their Service", GONE_S)
        users_have_their_rights(kube, home)
        cluster.patch(replicas=1)
        cluster.wait_running(1)

    assert kube.find("CustomResourceDefinition", DEFINITION) is not None
    assert cluster.uid(0) == uids[0], "the cluster serves on without an operator"
    with Release(place, "other") as release:
        one_namespace: Json = {"watch": {"namespaces": [home]}, "rbac": {"aggregate": False}}
        release.install(OPERATOR, operator_values(settings, **one_namespace), "--take-ownership", "--wait")
        cluster.patch(replicas=2)
        cluster.wait_running(2)
        assert cluster.uid(0) == uids[0]
        cluster.delete()
        poll(lambda: not cluster.pods(), "the cluster is gone", GONE_S)


def has_metrics(namespace: str) -> bool:
    """Whether the Service leads to the operator that runs now: for a moment it may lead to the one before."""
    page = f"/api/v1/namespaces/{namespace}/services/system-disque-operator-metrics:metrics/proxy/metrics"
    try:
        return "disque_operator_" in run("kubectl", "get", "--raw", page)
    except RefusedError:
        return False


def users_have_their_rights(kube: Kube, namespace: str) -> None:
    """Kubernetes adds the chart's roles to its own for users."""
    allowed = {
        "view": {"get disqueclusters": True, "patch disqueclusters": False, "patch disqueclusters/scale": False},
        "edit": {"get disqueclusters": True, "create disqueclusters": True, "patch disqueclusters/scale": True},
        "admin": {"delete disqueclusters": True, "deletecollection disqueclusters": True},
    }
    for role, rights in allowed.items():
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": role, "namespace": namespace}}
        binding: Json = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": role, "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": role, "namespace": namespace}],
        }
        kube.create(account)
        kube.create(binding)
        for right, expected in rights.items():
            poll(partial(answers, expected, role, right, namespace), f"{role}: {right} is {expected}", GONE_S)


def answers(expected: bool, account: str, right: str, namespace: str) -> bool:
    """Whether a service account may do something, or may not, as expected."""
    verb, resource = right.split()
    who = f"--as=system:serviceaccount:{namespace}:{account}"
    try:
        said = run("kubectl", "auth", "can-i", verb, resource, who, "--namespace", namespace)
    except RefusedError as error:
        said = str(error)
    return said.startswith("yes") == expected
