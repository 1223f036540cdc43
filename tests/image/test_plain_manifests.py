"""The manifests of the cluster without the operator are complete and consistent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from disqued import __version__
from disqued.config import Config, load

PLAIN = Path(__file__).parents[2] / "manifests" / "plain"
KUSTOMIZATION = yaml.safe_load((PLAIN / "kustomization.yaml").read_text(encoding="utf-8"))
OBJECTS: list[dict[str, Any]] = [
    manifest
    for name in KUSTOMIZATION["resources"]
    for manifest in yaml.safe_load_all((PLAIN / name).read_text(encoding="utf-8"))
]
INCLUDED = "/etc/disque-auth/disque.conf"


def find(kind: str, name: str) -> dict[str, Any]:
    (found,) = (item for item in OBJECTS if item["kind"] == kind and item["metadata"]["name"] == name)
    return found


def template() -> dict[str, Any]:
    spec: dict[str, Any] = find("StatefulSet", "disque")["spec"]["template"]
    return spec


def broker() -> dict[str, Any]:
    (container,) = template()["spec"]["containers"]
    found: dict[str, Any] = container
    return found


def configuration() -> Config:
    """The configuration of a pod, as the server reads it."""
    text = find("ConfigMap", "disque-config")["data"]["disque.conf"]

    def included(path: str) -> str:
        assert path == INCLUDED
        return "requirepass secret"

    return load(text, (), included)


def test_kustomization_includes_every_file() -> None:
    assert {path.name for path in PLAIN.glob("*.yaml")} == {"kustomization.yaml", *KUSTOMIZATION["resources"]}


def test_image_has_this_version() -> None:
    assert KUSTOMIZATION["images"] == [{"name": broker()["image"], "newName": "disqued", "newTag": __version__}]


@pytest.mark.parametrize("item", OBJECTS, ids=lambda item: f"{item['kind']}-{item['metadata']['name']}")
def test_objects_have_the_labels_that_select_pods(item: dict[str, Any]) -> None:
    selector = find("StatefulSet", "disque")["spec"]["selector"]["matchLabels"]
    assert selector.items() <= item["metadata"]["labels"].items()
    assert selector.items() <= template()["metadata"]["labels"].items()


@pytest.mark.parametrize("kind", ["PodDisruptionBudget", "NetworkPolicy", "Service"])
def test_policies_and_services_select_the_pods_of_the_cluster(kind: str) -> None:
    wanted = find("StatefulSet", "disque")["spec"]["selector"]["matchLabels"]
    for item in OBJECTS:
        if item["kind"] == kind:
            spec = item["spec"]
            selector = spec.get("podSelector") or spec["selector"]
            assert selector.get("matchLabels", selector) == wanted


def test_configuration_is_valid_and_names_the_members_service() -> None:
    config = configuration()
    members = find("Service", "disque-members")
    assert config.requirepass == b"secret"
    assert [str(seed) for seed in config.cluster_seeds] == [members["metadata"]["name"]]
    assert members["spec"]["publishNotReadyAddresses"]
    assert members["spec"]["clusterIP"] == "None"
    assert find("StatefulSet", "disque")["spec"]["serviceName"] == members["metadata"]["name"]


def test_ports_match_the_configuration() -> None:
    config = configuration()
    ports = {port["name"]: port["containerPort"] for port in broker()["ports"]}
    assert ports == {"disque": config.port, "bus": config.port + 10000, "http": config.http_port}
    for name in ("disque", "disque-members"):
        for port in find("Service", name)["spec"]["ports"]:
            assert port["port"] == ports[port["targetPort"]]
    for rule in find("NetworkPolicy", "disque")["spec"]["ingress"]:
        assert {port["port"] for port in rule["ports"]} <= ports.keys()


def test_volumes_are_mounted_at_the_configured_paths() -> None:
    mounts = {mount["name"]: mount["mountPath"] for mount in broker()["volumeMounts"]}
    assert mounts == {"data": configuration().dir, "config": "/etc/disque", "auth": str(Path(INCLUDED).parent)}
    assert broker()["args"][:2] == ["disque-server", "/etc/disque/disque.conf"]


def test_pod_satisfies_the_restricted_pod_security_standard() -> None:
    pod, container = template()["spec"]["securityContext"], broker()["securityContext"]
    assert pod["runAsNonRoot"]
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["readOnlyRootFilesystem"]
    assert not container["allowPrivilegeEscalation"]
    assert container["capabilities"] == {"drop": ["ALL"]}
    assert not template()["spec"]["automountServiceAccountToken"]


def test_grace_period_is_longer_than_the_pre_stop_hook() -> None:
    waits = re.search(r"timeout=(\d+)", broker()["lifecycle"]["preStop"]["httpGet"]["path"])
    assert waits is not None
    assert template()["spec"]["terminationGracePeriodSeconds"] >= 3 * int(waits[1])


def test_readme_creates_the_secret_that_the_pods_use() -> None:
    page = (PLAIN / "README.md").read_text(encoding="utf-8")
    keys = set(re.findall(r"--from-literal=([\w.]+)=", page))
    (volume,) = (volume for volume in template()["spec"]["volumes"] if volume["name"] == "auth")
    (password,) = (entry for entry in broker()["env"] if entry["name"] == "DISQUE_PASSWORD")
    reference = password["valueFrom"]["secretKeyRef"]
    assert keys == {reference["key"], *(item["key"] for item in volume["secret"]["items"])}
    assert f"secret generic {reference['name']} " in page
    assert volume["secret"]["secretName"] == reference["name"]
