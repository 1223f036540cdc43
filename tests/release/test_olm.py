"""The bundle for the Operator Lifecycle Manager: complete, consistent, and made from the manifests.

The validator of OLM, `operator-verify manifests`, is a Go program and not installed here. It finds nothing in this
bundle.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from disqued import __version__
from release import olm
from release.version import ROOT
from support import yamltext

pytestmark = pytest.mark.slow

Json = dict[str, Any]


@pytest.fixture(scope="module")
def bundle() -> dict[str, str]:
    return olm.files()


@pytest.fixture(scope="module")
def version(bundle: dict[str, str]) -> Json:
    found: Json = yamltext.load(bundle["manifests/disque-operator.clusterserviceversion.yaml"])
    return found


def documents(folder: Path) -> list[Json]:
    return [item for path in sorted(folder.glob("*.yaml")) for item in yamltext.load_all(path.read_text()) if item]


def test_required_fields_are_set(version: Json) -> None:
    spec = version["spec"]
    assert version["metadata"]["name"] == f"disque-operator.v{__version__}"
    assert spec["version"] == __version__
    for field in ("displayName", "description", "keywords", "maintainers", "provider", "maturity", "icon", "links"):
        assert spec[field], field
    assert all(re.fullmatch(r".+@.+\..+", one["email"]) for one in spec["maintainers"])
    assert base64.b64decode(spec["icon"][0]["base64data"]).startswith(b"<svg")
    assert {mode["type"] for mode in spec["installModes"]} == {
        "OwnNamespace",
        "SingleNamespace",
        "MultiNamespace",
        "AllNamespaces",
    }


def test_definitions_of_the_bundle_are_exactly_those_that_it_owns(bundle: dict[str, str], version: Json) -> None:
    definitions = [yamltext.load(text) for path, text in bundle.items() if path.endswith(".crd.yaml")]
    assert definitions == documents(ROOT / "manifests" / "crd")
    served = {
        (one["metadata"]["name"], one["spec"]["names"]["kind"], each["name"])
        for one in definitions
        for each in one["spec"]["versions"]
    }
    owned = version["spec"]["customresourcedefinitions"]["owned"]
    assert {(one["name"], one["kind"], one["version"]) for one in owned} == served
    assert all(one["description"] and one["displayName"] for one in owned)


def test_every_version_of_a_cluster_has_an_example(version: Json) -> None:
    owned = {
        (f"{one['name'].partition('.')[2]}/{one['version']}", one["kind"])
        for one in version["spec"]["customresourcedefinitions"]["owned"]
    }
    examples = json.loads(version["metadata"]["annotations"]["alm-examples"])
    found = {(one["apiVersion"], one["kind"]) for one in examples}
    assert found <= owned
    assert {one for one in owned if one[1] == "DisqueCluster"} <= found


def test_operator_has_the_permissions_of_the_manifests_and_watches_the_namespaces_of_its_group(version: Json) -> None:
    install = version["spec"]["install"]["spec"]
    by_kind = {item["kind"]: item for item in documents(ROOT / "manifests" / "operator")}
    assert install["clusterPermissions"][0]["rules"] == by_kind["ClusterRole"]["rules"]
    assert install["permissions"][0]["rules"] == by_kind["Role"]["rules"]
    [deployment] = install["deployments"]
    pod = deployment["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == install["permissions"][0]["serviceAccountName"]
    assert pod["containers"][0]["image"] == version["metadata"]["annotations"]["containerImage"]
    [targets] = [one for one in pod["containers"][0]["env"] if one["name"] == "DISQUE_OPERATOR_NAMESPACES"]
    assert targets["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.annotations['olm.targetNamespaces']"


def test_image_of_the_bundle_has_the_labels_of_its_metadata(bundle: dict[str, str]) -> None:
    labels = yamltext.load(bundle["metadata/annotations.yaml"])["annotations"]
    lines = bundle["bundle.Dockerfile"].splitlines()
    assert [line for line in lines if line.startswith("LABEL")] == [f"LABEL {k}={v}" for k, v in labels.items()]
    folders = {path.partition("/")[0] + "/" for path in bundle if "/" in path}
    assert folders == {labels[f"operators.operatorframework.io.bundle.{part}.v1"] for part in ("manifests", "metadata")}
