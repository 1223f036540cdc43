"""The bundle of the operator for the Operator Lifecycle Manager, made from the plain manifests.

| file | contents |
|---|---|
| `manifests/disque-operator.clusterserviceversion.yaml` | the Deployment and the permissions of `manifests/operator` |
| `manifests/*.crd.yaml` | the resource definitions of `manifests/crd` |
| `metadata/annotations.yaml` | the name of the package and its channel |
| `bundle.Dockerfile` | builds the image of the bundle |
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from release.version import ROOT, current

Json = dict[str, Any]

PACKAGE: Final = "disque-operator"
CHANNEL: Final = "alpha"
_MEDIA: Final = "registry+v1"
_PREFIX: Final = "operators.operatorframework.io.bundle"
_TARGETS: Final = "metadata.annotations['olm.targetNamespaces']"
"""Where OLM writes the namespaces that the operator must watch."""
_MODES: Final = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
_DESCRIPTION: Final = """\
Runs clusters of job brokers that speak the protocol of Disque. A job is delivered until a worker acknowledges it, also
if nodes fail in the meantime.

The operator creates clusters, adds and removes members without losing a job, replaces pods one at a time, rotates
passwords and certificates, and restores what was lost.
"""


def files() -> dict[str, str]:
    """Return the files of the bundle by path."""
    return {
        f"manifests/{PACKAGE}.clusterserviceversion.yaml": _text(service_version()),
        **{f"manifests/{item['metadata']['name']}.crd.yaml": _text(item) for item in _definitions()},
        "metadata/annotations.yaml": _text({"annotations": _labels()}),
        "bundle.Dockerfile": _dockerfile(),
    }


def service_version() -> Json:
    """Return the ClusterServiceVersion."""
    deployment = _one("Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": f"{PACKAGE}.v{current()}",
            "namespace": "placeholder",
            "annotations": {
                "alm-examples": json.dumps(list(_examples())),
                "capabilities": "Full Lifecycle",
                "categories": "Streaming & Messaging",
                "containerImage": container["image"],
                "olm.skipRange": f"<{current()}",
            },
        },
        "spec": {
            "displayName": "Disque",
            "description": _DESCRIPTION,
            "version": current(),
            "maturity": CHANNEL,
            "minKubeVersion": "1.29.0",
            "keywords": ["disque", "job queue", "message broker"],
            "maintainers": [{"name": "The disqued contributors", "email": "disqued@example.org"}],
            "provider": {"name": "The disqued contributors"},
            "links": [{"name": "Documentation", "url": "https://example.org/disqued"}],
            "icon": [{"base64data": _ICON, "mediatype": "image/svg+xml"}],
            "installModes": [{"type": mode, "supported": True} for mode in _MODES],
            "customresourcedefinitions": {"owned": list(_owned())},
            "install": {
                "strategy": "deployment",
                "spec": {
                    "clusterPermissions": [_permissions("ClusterRole")],
                    "permissions": [_permissions("Role")],
                    "deployments": [
                        {
                            "name": deployment["metadata"]["name"],
                            "label": deployment["metadata"]["labels"],
                            "spec": _watching_targets(deployment["spec"]),
                        }
                    ],
                },
            },
        },
    }


def _watching_targets(spec: Json) -> Json:
    """Let the Deployment watch the namespaces of its OperatorGroup."""
    targets = {"name": "DISQUE_OPERATOR_NAMESPACES", "valueFrom": {"fieldRef": {"fieldPath": _TARGETS}}}
    container = spec["template"]["spec"]["containers"][0]
    container["env"] = [targets, *container["env"]]
    return spec


def _examples() -> Iterator[Json]:
    """Yield the samples in each version of their kind."""
    paths = sorted((ROOT / "manifests/samples").glob("*.yaml"))
    samples = [item for path in paths for item in _documents(path)]
    for definition in _definitions():
        group, kind = definition["spec"]["group"], definition["spec"]["names"]["kind"]
        for version in definition["spec"]["versions"]:
            yield from (one | {"apiVersion": f"{group}/{version['name']}"} for one in samples if one["kind"] == kind)


def _owned() -> Iterator[Json]:
    for definition in _definitions():
        names, schema = definition["spec"]["names"], definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for version in definition["spec"]["versions"]:
            yield {
                "name": definition["metadata"]["name"],
                "kind": names["kind"],
                "version": version["name"],
                "displayName": names["kind"],
                "description": schema["description"],
            }


def _permissions(kind: str) -> Json:
    role = _one(kind)
    return {"serviceAccountName": _one("ServiceAccount")["metadata"]["name"], "rules": role["rules"]}


def _one(kind: str) -> Json:
    paths = sorted((ROOT / "manifests/operator").glob("*.yaml"))
    [found] = [item for path in paths for item in _documents(path) if item["kind"] == kind]
    return found


def _definitions() -> list[Json]:
    return [item for path in sorted((ROOT / "manifests/crd").glob("*.yaml")) for item in _documents(path)]


def _documents(path: Path) -> list[Json]:
    return [item for item in yaml.safe_load_all(path.read_text(encoding="utf-8")) if item]


def _labels() -> dict[str, str]:
    return {
        f"{_PREFIX}.mediatype.v1": _MEDIA,
        f"{_PREFIX}.manifests.v1": "manifests/",
        f"{_PREFIX}.metadata.v1": "metadata/",
        f"{_PREFIX}.package.v1": PACKAGE,
        f"{_PREFIX}.channels.v1": CHANNEL,
        f"{_PREFIX}.channel.default.v1": CHANNEL,
    }


def _dockerfile() -> str:
    labels = "".join(f"LABEL {name}={value}\n" for name, value in _labels().items())
    return f"FROM scratch\n{labels}COPY manifests /manifests/\nCOPY metadata /metadata/\n"


def _text(item: Json) -> str:
    plain = json.loads(json.dumps(item))  # without shared objects, which YAML would write as aliases
    text: str = yaml.safe_dump(plain, sort_keys=False, width=120, allow_unicode=True)
    return text


_ICON: Final = (
    "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCA2NCA2NCI+PGNpcmNsZSBjeD0iMzIiIGN5PSIzMiIg"
    "cj0iMzAiIGZpbGw9IiMyNTYzZWIiLz48cGF0aCBkPSJNMjAgMTZoMTJhMTYgMTYgMCAwIDEgMCAzMkgyMHoiIGZpbGw9IiNmZmYiLz48L3N2Zz4="
)
"""A blue disc with a D, as SVG."""
