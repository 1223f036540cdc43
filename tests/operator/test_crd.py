"""The CustomResourceDefinition: that it is current, complete, and one with what the operator reads and writes.

What an API server makes of it is tested in e2e/test_schema.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.directives import FREE, OWNED
from disque_operator.schema import docs
from disque_operator.schema.definition import page
from disque_operator.spec import Spec, SpecFields, field_name, parse
from disqued.config.options import OPTIONS
from support.manifests import EVERYTHING, ROOT, SAMPLES, sample

FILE = ROOT / "manifests" / "crd" / "disqueclusters.yaml"
LARGEST_ANNOTATION = 262144
"""`kubectl apply` keeps the whole object in one."""
METADATA = {"name": "jobs", "namespace": "shop"}


def version() -> Json:
    found: Json = yaml.safe_load(FILE.read_text())["spec"]["versions"][0]
    return found


def schema(part: str) -> Json:
    found: Json = version()["schema"]["openAPIV3Schema"]["properties"][part]
    return found


def nodes(tree: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """All schemas in a schema, with where they stand."""
    yield path, tree
    for name, below in tree.get("properties", {}).items():
        yield from nodes(below, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in tree:
            yield from nodes(tree[name], f"{path}[]")


def with_defaults(value: Any, tree: Json) -> Any:
    """What an API server makes of a value."""
    if isinstance(value, list):
        return [with_defaults(entry, tree["items"]) for entry in value]
    if not isinstance(value, dict) or "properties" not in tree:
        return value
    missing = {name: below["default"] for name, below in tree["properties"].items() if "default" in below}
    return {
        name: with_defaults(one, tree["properties"][name]) if name in tree["properties"] else one
        for name, one in (missing | value).items()
    }


def unknown(value: Any, tree: Json, path: str = "spec") -> Iterator[str]:
    """Fields of a value that a schema does not know."""
    if isinstance(value, list):
        for entry in value:
            yield from unknown(entry, tree["items"], f"{path}[]")
    elif isinstance(value, dict) and "additionalProperties" not in tree:
        for name, below in value.items():
            if name in tree.get("properties", {}):
                yield from unknown(below, tree["properties"][name], f"{path}.{name}")
            elif not tree.get("x-kubernetes-preserve-unknown-fields"):
                yield f"{path}.{name}"


def test_the_file_is_current() -> None:
    assert FILE.read_text() == page(), "write it: make manifests"


def test_the_reference_page_is_current() -> None:
    assert (ROOT / "docs" / "disquecluster.md").read_text() == docs.page(), "write it: make docs"


def test_kubectl_can_apply_it() -> None:
    assert len(FILE.read_text()) < LARGEST_ANNOTATION


def test_the_schema_has_the_fields_that_the_operator_reads() -> None:
    assert set(schema("spec")["properties"]) == {field_name(name) for name in SpecFields.model_fields}


def test_both_sides_have_the_same_defaults() -> None:
    assert parse({"metadata": METADATA, "spec": with_defaults({}, schema("spec"))}) == Spec(
        name="jobs", namespace="shop"
    )


def test_a_spec_with_every_field_is_known_whole() -> None:
    assert set(EVERYTHING) == set(schema("spec")["properties"])
    assert list(unknown(EVERYTHING, schema("spec"))) == []


@pytest.mark.parametrize("name", sorted(path.stem for path in SAMPLES.glob("*.yaml")))
def test_samples_use_known_fields_only(name: str) -> None:
    clusters = [body for body in sample(name) if body["kind"] == names.KIND]
    assert [field for body in clusters for field in unknown(body["spec"], schema("spec"))] == []


@pytest.mark.parametrize("part", ["spec", "status"])
def test_every_field_is_described_in_a_sentence(part: str) -> None:
    fields = [(path, node) for path, node in nodes(schema(part), part) if not path.endswith("[]")]
    foreign = ("affinity", "tolerations", "topologySpreadConstraints", "clients", "resources")
    ours = [(path, node) for path, node in fields if not set(path.replace("[]", "").split(".")[:-1]) & set(foreign)]
    assert [path for path, node in ours if not node.get("description", "").endswith(".")] == []


def test_every_rule_says_what_to_do() -> None:
    root = version()["schema"]["openAPIV3Schema"]
    rules = [rule for _, node in nodes(root) for rule in node.get("x-kubernetes-validations", ())]
    assert len(rules) > 40
    assert [rule["rule"] for rule in rules if len(rule["message"]) < 20 or "\n" in rule["message"]] == []


def test_what_rules_look_at_is_bounded() -> None:
    """Rules have a budget that is reckoned from the longest value there may be."""
    unbounded = []
    for path, node in nodes(schema("spec")["properties"]["config"], "config"):
        if node.get("type") == "string" and "maxLength" not in node:
            unbounded.append(path)
        if "additionalProperties" in node and "maxProperties" not in node:
            unbounded.append(path)
    assert unbounded == []


def test_every_directive_is_either_free_or_the_operators() -> None:
    known = {option.name for option in OPTIONS if option.in_file}
    assert {option.name for option in FREE} | set(OWNED) == known | {"include"}
    assert not {option.name for option in FREE} & set(OWNED)


def test_people_can_list_scale_and_find_it() -> None:
    assert set(version()["subresources"]) == {"status", "scale"}
    columns = [column["name"] for column in version()["additionalPrinterColumns"] if not column["priority"]]
    assert columns == ["Desired", "Ready", "Formed", "Phase", "Jobs", "Version", "Age"]
    called = yaml.safe_load(FILE.read_text())["spec"]["names"]
    assert (called["shortNames"], called["categories"]) == (["dq"], ["all"])
