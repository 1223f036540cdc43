"""The Helm charts on a real Kubernetes: rendering, installation, `helm test`, upgrade, rollback and uninstallation."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.support.brokers import poll
from e2e.support.cluster import SMALL, DisqueCluster
from e2e.support.helm import CLUSTER, OPERATOR, Release, ToolFailedError, operator_values, rendered, run
from e2e.support.kube import Json, Kube
from e2e.support.settings import Settings

pytestmark = [
    pytest.mark.skipif(
        not (shutil.which("helm") and shutil.which("kubectl")), reason="helm or kubectl is not installed"
    ),
    pytest.mark.usefixtures("operator"),  # it also installs the resource definition, which Helm and kubectl need
]

DEFINITION = "disqueclusters.disque.dev"
MONITORING = "monitoring.coreos.com/v1"
MONITORS = [f"--api-versions={MONITORING}/{kind}" for kind in ("PodMonitor", "PrometheusRule", "ServiceMonitor")]
NEW_FIELD = "priorityClassName"
"""A field that the resource definition of the older chart does not have."""
MODES = [
    pytest.param(chart, values, id=f"{chart.name}-{values.name.removesuffix('-values.yaml')}")
    for chart in (OPERATOR, CLUSTER)
    for values in sorted(chart.glob("ci/*-values.yaml"))
]
GONE_S = 60
TAKEN_OVER_S = 300
"""An operator waits two minutes for another one to hand a cluster over."""


def cluster_values(settings: Settings, **values: Any) -> Json:
    small: Json = {"resources": SMALL, "storage": {"size": "64Mi"}, "upgrade": {"soakSeconds": 2}}
    image: Json = {"image": settings.image, "imagePullPolicy": "IfNotPresent"}
    return small | image | {"fullnameOverride": "shop"} | values


def definition_fields(kube: Kube) -> Json:
    definition = kube.get("CustomResourceDefinition", DEFINITION)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    fields: Json = schema["properties"]["spec"]["properties"]
    return fields


@pytest.fixture
def older_chart(tmp_path: Path) -> Path:
    """An older release of the operator's chart, with one field less in the resource definition."""
    chart = tmp_path / "older"
    shutil.copytree(OPERATOR, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text()) | {"version": "0.0.1"}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
    path = chart / "files" / "crd" / "disqueclusters.yaml"
    definition = yaml.safe_load(path.read_text())
    del definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][NEW_FIELD]
    path.write_text(yaml.safe_dump(definition))
    return chart


@pytest.mark.parametrize(("chart", "values"), MODES)
def test_api_server_accepts_the_rendered_objects(namespace: str, chart: Path, values: Path) -> None:
    given = yaml.safe_load(values.read_text())
    watched = ["--set", f"watch.namespaces={{{namespace}}}"] if "watch" in given else []
    shown = ["--set", f"dashboards.namespace={namespace}"] if "dashboards" in given else []
    objects = [
        item
        for item in rendered(chart, values, namespace, *MONITORS, *watched, *shown)
        if not item["apiVersion"].startswith(MONITORING)
    ]
    assert objects
    output = run(
        "kubectl",
        *("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "--filename", "-"),
        given=yaml.safe_dump_all(objects),
    )
    assert output.count("serverside-applied") == len(objects)


def test_cluster_chart_is_installed_tested_scaled_rolled_back_and_uninstalled(
    kube: Kube, namespace: str, settings: Settings
) -> None:
    cluster = DisqueCluster(kube, namespace, "shop", settings.image)
    with Release(namespace, "mail") as release:
        notes = release.install(CLUSTER, cluster_values(settings, replicas=2))
        assert f"helm test mail -n {namespace}" in notes
        assert "was added, fetched and acknowledged" in release.test(), "the test waits for the cluster"
        cluster.wait_running(2)
        uids = [cluster.uid(ordinal) for ordinal in (0, 1)]

        release.install(CLUSTER, cluster_values(settings, replicas=3))
        cluster.wait_running(3)
        release.test()
        release.rollback()
        cluster.wait_running(2)
        assert [cluster.uid(ordinal) for ordinal in (0, 1)] == uids

    poll(lambda: not cluster.pods() and not kube.all("Service", namespace), "only the volumes remain", GONE_S)
    assert cluster.claims() == {"data-shop-0", "data-shop-1"}
    left = [pod["metadata"]["name"] for pod in kube.all("Pod", namespace)]
    assert left == ["shop-test"], "Helm keeps the test pod, so that its log can be read"


def test_chart_test_passes_without_a_password_and_with_a_custom_secret(
    kube: Kube, namespace: str, settings: Settings
) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": namespace}}
    kube.create(secret | {"stringData": {"password": "own password"}})
    for name, auth in (("open", {"enabled": False}), ("closed", {"secretName": "mine"})):
        with Release(namespace, name) as release:
            values = cluster_values(settings, fullnameOverride=name, replicas=1, auth=auth, service={"port": 7000})
            release.install(CLUSTER, values)
            assert f"{name}.{namespace}.svc:7000" in release.test()


def test_helm_shows_the_api_servers_validation_error(namespace: str, settings: Settings) -> None:
    with Release(namespace, "mail") as release, pytest.raises(ToolFailedError, match="lower minReplicas too"):
        release.install(CLUSTER, cluster_values(settings, replicas=2, minReplicas=3))


@pytest.mark.alone
@pytest.mark.usefixtures("no_operator")
def test_operator_chart_upgrades_its_resource_definition_and_clusters_survive_its_removal(
    kube: Kube, namespaces: Callable[[], str], settings: Settings, older_chart: Path
) -> None:
    system, home = namespaces(), namespaces()
    cluster = DisqueCluster(kube, home, "shop", settings.image)
    with Release(system, "system") as release:
        release.install(older_chart, operator_values(settings.operator_image), "--take-ownership", "--wait")
        assert NEW_FIELD not in definition_fields(kube)
        cluster.create(replicas=2)
        cluster.wait_running(2)
        uids = [cluster.uid(ordinal) for ordinal in (0, 1)]

        release.install(OPERATOR, operator_values(settings.operator_image), "--wait")
        assert NEW_FIELD in definition_fields(kube)
        poll(partial(has_metrics, system), "the operator's metrics are available through their Service", GONE_S)
        check_user_permissions(kube, home)
        cluster.patch(replicas=1)
        cluster.wait_running(1)

    assert kube.find("CustomResourceDefinition", DEFINITION) is not None
    assert cluster.uid(0) == uids[0], "the cluster keeps running without an operator"
    with Release(system, "other") as release:
        one_namespace: Json = {"watch": {"namespaces": [home]}, "rbac": {"aggregate": False}}
        release.install(
            OPERATOR, operator_values(settings.operator_image, **one_namespace), "--take-ownership", "--wait"
        )
        cluster.annotate(operator=f"{system}/other-disque-operator")  # the removed one cannot hand the cluster over
        cluster.patch(replicas=2)
        cluster.wait_running(2, within_s=TAKEN_OVER_S)
        assert cluster.uid(0) == uids[0]
        cluster.delete()
        poll(lambda: not cluster.pods(), "the cluster is gone", GONE_S)


def has_metrics(namespace: str) -> bool:
    """Return whether the Service reaches the current operator; for a moment it may route to the previous one."""
    page = f"/api/v1/namespaces/{namespace}/services/system-disque-operator-metrics:metrics/proxy/metrics"
    try:
        return "disque_operator_" in run("kubectl", "get", "--raw", page)
    except ToolFailedError:
        return False


def check_user_permissions(kube: Kube, namespace: str) -> None:
    """Check that Kubernetes aggregates the chart's roles into its own roles for users."""
    allowed = {
        "view": {"get disqueclusters": True, "patch disqueclusters": False, "patch disqueclusters/scale": False},
        "edit": {"get disqueclusters": True, "create disqueclusters": True, "patch disqueclusters/scale": True},
        "admin": {"delete disqueclusters": True, "deletecollection disqueclusters": True},
    }
    for role, permissions in allowed.items():
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
        for permission, expected in permissions.items():
            poll(
                partial(is_allowed_as_expected, expected, role, permission, namespace),
                f"{role}: {permission} is {expected}",
                GONE_S,
            )


def is_allowed_as_expected(expected: bool, account: str, permission: str, namespace: str) -> bool:
    """Return whether the permission of a service account is as expected."""
    verb, resource = permission.split()
    user = f"--as=system:serviceaccount:{namespace}:{account}"
    try:
        output = run("kubectl", "auth", "can-i", verb, resource, user, "--namespace", namespace)
    except ToolFailedError as error:
        output = str(error)
    return output.startswith("yes") == expected
