"""The operator's chart and its manifests deploy the same operator with the same permissions."""

from __future__ import annotations

from pathlib import Path

import pytest

from charts.helm import CHARTS, OPERATOR, Helm, Json, Objects
from support import yamltext

PLAIN = CHARTS.parent / "manifests" / "operator"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
CHART_ONLY = {
    "DISQUE_OPERATOR_LEASE",  # a namespace may have several releases
    "DISQUE_OPERATOR_LEASE_NAMESPACE",
    "DISQUE_OPERATOR_LOG_FORMAT",
    "DISQUE_OPERATOR_LOG_LEVEL",
    "DISQUE_OPERATOR_NAMESPACES",
    "DISQUE_OPERATOR_POD_TEMPLATES",
}
"""Variables that only the chart sets, to the operator's defaults or to values of the release."""


def plain(folder: Path) -> Objects:
    texts = (path.read_text() for path in sorted(folder.glob("*.yaml")))
    return Objects([item for text in texts for item in yamltext.load_all(text) if item])


def permissions(objects: Objects, *kinds: str) -> set[tuple[str, str, str]]:
    """Return the permissions of all roles of these kinds: group, resource with the only name if there is one, verb."""
    allowed = set()
    for kind in kinds:
        for role in objects.of(kind):
            for rule in role["rules"]:
                assert set(rule["verbs"]) <= set(VERBS), "no role may use `*`"
                assert rule.keys() - {"resourceNames"} == {"apiGroups", "resources", "verbs"}
                named = "".join(f"/{name.removeprefix('demo-')}" for name in rule.get("resourceNames", ()))
                allowed |= {
                    (group, resource + named, verb)
                    for group in rule["apiGroups"]
                    for resource in rule["resources"]
                    for verb in rule["verbs"]
                }
    return allowed


def pod(objects: Objects) -> Json:
    """Return the pod of the Deployment, without defaults and variables that only the chart sets."""
    spec: Json = objects.one("Deployment")["spec"]["template"]["spec"]
    [container] = spec["containers"]
    env = {variable["name"]: variable for variable in container["env"] if variable["name"] not in CHART_ONLY}
    defaults = {"imagePullPolicy": "IfNotPresent", "terminationGracePeriodSeconds": 30}
    return {
        name: value
        for name, value in (spec | container | {"env": env}).items()
        if name != "containers" and defaults.get(name) != value
    }


def test_permissions_are_equal_for_all_namespaces(helm: Helm) -> None:
    chart = helm.template(OPERATOR, {"rbac": {"aggregate": False}})
    for kind in ("ClusterRole", "Role"):
        assert permissions(chart, kind) == permissions(plain(PLAIN), kind)
    assert not [resource for _, resource, _ in permissions(chart, "ClusterRole") if resource.startswith("leases")]


def test_permissions_are_equal_for_one_namespace(helm: Helm) -> None:
    chart = helm.template(OPERATOR, {"watch": {"namespaces": ["here"]}, "rbac": {"aggregate": False, "nodes": False}})
    assert chart.of("ClusterRole") == chart.of("ClusterRoleBinding") == []
    assert permissions(chart, "Role") == permissions(plain(PLAIN / "one-namespace"), "Role")


OF_ALL_NAMESPACES = {("storage.k8s.io", "storageclasses", "get")}
"""Permissions that a Role cannot give, which the operator can do without."""


def test_only_watched_namespaces_get_a_role(helm: Helm) -> None:
    chart = helm.template(OPERATOR, {"watch": {"namespaces": ["orders", "mail"]}, "rbac": {"aggregate": False}})
    assert permissions(chart, "ClusterRole") == {("", "nodes", "get")}, "nodes have no namespace"
    everywhere = permissions(helm.template(OPERATOR, {"rbac": {"aggregate": False, "nodes": False}}), "ClusterRole")
    for namespace in ("mail", "orders"):
        there = Objects([item for item in chart.all if item["metadata"].get("namespace") == namespace])
        assert permissions(there, "Role") == everywhere - OF_ALL_NAMESPACES
        assert there.one("RoleBinding")["subjects"] == [
            {"kind": "ServiceAccount", "name": "demo-disque-operator", "namespace": "here"}
        ]
    [env] = [
        variable["value"]
        for variable in chart.one("Deployment")["spec"]["template"]["spec"]["containers"][0]["env"]
        if variable["name"] == "DISQUE_OPERATOR_NAMESPACES"
    ]
    assert env == "mail,orders"


def test_bindings_reference_the_service_account_and_existing_roles(helm: Helm) -> None:
    for values in ({}, {"watch": {"namespaces": ["mail"]}}):
        chart = helm.template(OPERATOR, values)
        roles = {(role["kind"], role["metadata"].get("namespace"), role["metadata"]["name"]) for role in chart.all}
        for binding in chart.of("RoleBinding") + chart.of("ClusterRoleBinding"):
            role, namespace = binding["roleRef"], binding["metadata"].get("namespace")
            assert (role["kind"], namespace, role["name"]) in roles
            assert [subject["name"] for subject in binding["subjects"]] == [
                chart.one("ServiceAccount")["metadata"]["name"]
            ]


@pytest.mark.parametrize("folder", [PLAIN, PLAIN / "one-namespace"], ids=lambda folder: folder.name)
def test_pods_are_equal(helm: Helm, folder: Path) -> None:
    chart = helm.template(OPERATOR, {"fullnameOverride": "disque-operator"})
    assert pod(chart) == pod(plain(folder))
