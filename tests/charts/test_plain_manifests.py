"""The chart of the operator and its plain manifests are the same operator, with the same rights."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from charts.helm import CHARTS, OPERATOR, Helm, Json, Objects

PLAIN = CHARTS.parent / "manifests" / "operator"
WORDS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
CHART_ONLY = {
    "DISQUE_OPERATOR_LEASE",  # several releases may be in one namespace
    "DISQUE_OPERATOR_LEASE_NAMESPACE",
    "DISQUE_OPERATOR_LOG_FORMAT",
    "DISQUE_OPERATOR_LOG_LEVEL",
    "DISQUE_OPERATOR_NAMESPACES",
}
"""What the chart always sets, with the operator's defaults, or because of where it runs."""


def plain(folder: Path) -> Objects:
    texts = (path.read_text() for path in sorted(folder.glob("*.yaml")))
    return Objects([item for text in texts for item in yaml.safe_load_all(text) if item])


def rights(objects: Objects, *kinds: str) -> set[tuple[str, str, str]]:
    """What all roles of these kinds allow: group, resource, verb."""
    allowed = set()
    for kind in kinds:
        for role in objects.of(kind):
            for rule in role["rules"]:
                assert set(rule["verbs"]) <= set(WORDS), "nobody gets `*`"
                assert rule.keys() == {"apiGroups", "resources", "verbs"}
                allowed |= {
                    (group, resource, verb)
                    for group in rule["apiGroups"]
                    for resource in rule["resources"]
                    for verb in rule["verbs"]
                }
    return allowed


def pod(objects: Objects) -> Json:
    """The pod of the Deployment, without what only says the default and what only charts set."""
    spec: Json = objects.one("Deployment")["spec"]["template"]["spec"]
    [container] = spec["containers"]
    env = {variable["name"]: variable for variable in container["env"] if variable["name"] not in CHART_ONLY}
    defaults = {"imagePullPolicy": "IfNotPresent", "terminationGracePeriodSeconds": 30}
    return {
        name: value
        for name, value in (spec | container | {"env": env}).items()
        if name != "containers" and defaults.get(name) != value
    }


def test_both_look_after_all_namespaces_with_the_same_rights(helm: Helm) -> None:
    chart = helm.template(OPERATOR, {"rbac": {"aggregate": False}})
    for kind in ("ClusterRole", "Role"):
        assert rights(chart, kind) == rights(plain(PLAIN), kind)
    assert rights(chart, "ClusterRole") & {("coordination.k8s.io", "leases", "update")} == set()


def test_both_look_after_one_namespace_with_the_same_rights(helm: Helm) -> None:
    chart = helm.template(OPERATOR, {"watch": {"namespaces": ["here"]}, "rbac": {"aggregate": False}})
    assert chart.of("ClusterRole") == chart.of("ClusterRoleBinding") == []
    assert rights(chart, "Role") == rights(plain(PLAIN / "one-namespace"), "Role")


def test_every_namespace_that_is_watched_gets_a_role_and_no_other(helm: Helm) -> None:
    chart = helm.template(OPERATOR, {"watch": {"namespaces": ["orders", "mail"]}, "rbac": {"aggregate": False}})
    everywhere = rights(helm.template(OPERATOR, {"rbac": {"aggregate": False}}), "ClusterRole")
    for namespace in ("mail", "orders"):
        there = Objects([item for item in chart.all if item["metadata"].get("namespace") == namespace])
        assert rights(there, "Role") == everywhere
        assert there.one("RoleBinding")["subjects"] == [
            {"kind": "ServiceAccount", "name": "demo-disque-operator", "namespace": "here"}
        ]
    [env] = [
        variable["value"]
        for variable in chart.one("Deployment")["spec"]["template"]["spec"]["containers"][0]["env"]
        if variable["name"] == "DISQUE_OPERATOR_NAMESPACES"
    ]
    assert env == "mail,orders"


def test_every_binding_is_of_the_account_and_a_role_that_is_there(helm: Helm) -> None:
    for values in ({}, {"watch": {"namespaces": ["mail"]}}):
        chart = helm.template(OPERATOR, values)
        roles = {(role["kind"], role["metadata"].get("namespace"), role["metadata"]["name"]) for role in chart.all}
        for binding in chart.of("RoleBinding") + chart.of("ClusterRoleBinding"):
            to, place = binding["roleRef"], binding["metadata"].get("namespace")
            assert (to["kind"], place, to["name"]) in roles
            assert [subject["name"] for subject in binding["subjects"]] == [
                chart.one("ServiceAccount")["metadata"]["name"]
            ]


@pytest.mark.parametrize("folder", [PLAIN, PLAIN / "one-namespace"], ids=lambda folder: folder.name)
def test_both_run_the_same_pod(helm: Helm, folder: Path) -> None:
    chart = helm.template(OPERATOR, {"fullnameOverride": "disque-operator"})
    assert pod(chart) == pod(plain(folder))
