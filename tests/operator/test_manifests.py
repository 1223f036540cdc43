"""The plain manifests of the operator: permissions, and both ways to install it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from disque_operator import names
from disque_operator.kube import KINDS
from disque_operator.observe import LISTED
from disque_operator.options import parse
from disqued import __version__
from support import yamltext

FOLDER: Final = Path(__file__).parents[2] / "manifests" / "operator"
Json = dict[str, Any]

NEEDED: Final = {
    "Certificate": {"list", "create", "patch", "delete"},
    "ConfigMap": {"create", "patch"},
    "CronJob": {"create", "patch", "delete"},
    "Event": {"create", "list"},
    "Job": {"create", "patch", "delete"},
    "Lease": {"create", "get", "update"},
    "NetworkPolicy": {"create", "patch", "delete"},
    "Node": {"get"},
    "PersistentVolumeClaim": {"create", "patch", "delete"},
    "Pod": {"delete"},
    "PodDisruptionBudget": {"create", "patch", "delete"},
    "PodMonitor": {"get", "create", "patch", "delete"},
    "Secret": {"create", "patch"},
    "Service": {"create", "patch", "delete"},
    "ServiceAccount": {"create", "patch"},
    "StatefulSet": {"create", "patch"},
    "StorageClass": {"get"},
    names.KIND: {"get", "list", "watch"},
    names.USER_KIND: {"get", "list", "watch"},
    names.QUEUE_KIND: {"get", "list", "watch"},
    names.SCHEDULE_KIND: {"get", "list", "watch"},
    names.BACKUP_KIND: {"get", "list", "watch"},
}
"""The verbs that the operator needs for each kind. Server-side apply needs patch, and create for new objects."""
OURS: Final = (names.PLURAL, names.USER_PLURAL, names.QUEUE_PLURAL, names.SCHEDULE_PLURAL, names.BACKUP_PLURAL)
SUBRESOURCES: Final = {
    ("", "pods/eviction"): {"create"},
    **{(names.GROUP, f"{plural}/status"): {"patch"} for plural in OURS},
}
NODES: Final = ("", "nodes")
"""Nodes have no namespace, so the operator of one namespace cannot be permitted to read them."""


def documents(folder: Path) -> list[Json]:
    return [item for path in sorted(folder.glob("*.yaml")) for item in yamltext.load_all(path.read_text())]


def of_kind(kind: str, folder: Path) -> list[Json]:
    return [item for item in documents(folder) if item["kind"] == kind]


def verbs(folder: Path) -> dict[tuple[str, str], set[str]]:
    """Return the verbs of all roles by API group and resource."""
    roles = [*of_kind("Role", folder), *of_kind("ClusterRole", folder)]
    found: dict[tuple[str, str], set[str]] = {}
    for rule in [rule for role in roles for rule in role["rules"]]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.setdefault((group, resource), set()).update(rule["verbs"])
    return found


FOLDERS: Final = (FOLDER, FOLDER / "one-namespace")
OF_ALL_NAMESPACES: Final = {"StorageClass"}
"""Kinds that a Role cannot give rights for, which the operator can do without."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_operator_has_exactly_the_permissions_it_uses(folder: Path) -> None:
    needed = {
        kind: changed | ({"get", "list", "watch"} if kind in LISTED else set())
        for kind, changed in NEEDED.items()
        if folder == FOLDER or kind not in OF_ALL_NAMESPACES
    }
    expected = {(KINDS[kind].api.rpartition("/")[0], KINDS[kind].plural): allowed for kind, allowed in needed.items()}
    if folder != FOLDER:
        del expected[NODES]
    assert verbs(folder) == expected | SUBRESOURCES
    assert not any("*" in allowed for allowed in verbs(folder).values())


def test_every_kind_has_a_rule() -> None:
    assert set(NEEDED) == set(KINDS)


def test_only_the_lease_role_is_limited_to_the_operator_namespace() -> None:
    [role] = of_kind("Role", FOLDER)
    assert role["metadata"]["namespace"] == "disque-system"
    assert [(rule["resources"], rule.get("resourceNames"), rule["verbs"]) for rule in role["rules"]] == [
        (["leases"], ["disque-operator"], ["get", "update"]),
        (["leases"], None, ["create"]),
    ], "creation cannot be limited to names"


def test_both_deployments_differ_only_in_the_namespace() -> None:
    [wide] = of_kind("Deployment", FOLDER)
    [narrow] = of_kind("Deployment", FOLDER / "one-namespace")
    wide["metadata"].pop("namespace")
    environment = narrow["spec"]["template"]["spec"]["containers"][0]["env"]
    [own] = [variable for variable in environment if variable["name"] == "DISQUE_OPERATOR_NAMESPACES"]
    assert own["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}
    environment.remove(own)
    assert narrow == wide


@pytest.mark.parametrize("folder", FOLDERS)
def test_environment_variables_are_settings(folder: Path) -> None:
    [deployment] = of_kind("Deployment", folder)
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    environ = {variable["name"]: variable.get("value", "given") for variable in container["env"]}
    options = parse([], environ, "chance", "disque-system")
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert container["image"] == f"disqued-operator:{__version__}"
    assert options.image == f"disqued:{__version__}"
    assert options.identity == "given"
    assert options.liveness.endswith(f":{ports['health']}{container['livenessProbe']['httpGet']['path']}")
    assert options.metrics_port == ports["metrics"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_operator_pod_satisfies_the_restricted_pod_security_standard(folder: Path) -> None:
    [deployment] = of_kind("Deployment", folder)
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
