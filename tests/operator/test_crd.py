"""The CustomResourceDefinition: it is generated from the model and matches what the operator reads and writes.

e2e/test_schema.py tests how an API server applies it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.directives import FREE, OWNED
from disque_operator.ondemandspec import BackupFields
from disque_operator.part_status import BackupRunStatus, QueueStatus, ScheduleStatus, UserStatus
from disque_operator.queuespec import QueueFields
from disque_operator.schedulespec import ScheduleFields
from disque_operator.schema.definition import RESOURCES, Resource, page
from disque_operator.sections import Section, field_name
from disque_operator.spec import Spec, SpecFields, parse
from disque_operator.userspec import UserFields
from disqued.config.options import OPTIONS
from support import yamltext
from support.manifests import EVERYTHING, ROOT, SAMPLES, sample

FILE = ROOT / "manifests" / "crd" / "disqueclusters.yaml"
LARGEST_ANNOTATION = 262144
"""`kubectl apply` stores the whole object in an annotation, as JSON."""
FOREIGN = (
    *("spec.affinity.", "spec.tolerations[]", "spec.topologySpreadConstraints[]", "spec.resources."),
    *("spec.networkPolicy.clients[]", "spec.networkPolicy.monitoring[]", "spec.networkPolicy.egress.rules[]"),
    "spec.networkPolicy.external[]",
)
"""Fields of types of Kubernetes, which do not describe all of theirs."""
METADATA = {"name": "jobs", "namespace": "shop"}


def version() -> Json:
    found: Json = yamltext.load(FILE.read_text())["spec"]["versions"][0]
    return found


def schema(part: str) -> Json:
    found: Json = version()["schema"]["openAPIV3Schema"]["properties"][part]
    return found


def nodes(tree: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Yield all schemas in a schema, with their paths."""
    yield path, tree
    for name, below in tree.get("properties", {}).items():
        yield from nodes(below, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in tree:
            yield from nodes(tree[name], f"{path}[]")


def with_defaults(value: Any, tree: Json) -> Any:
    """Return a value with defaults, as an API server would."""
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
    """Yield fields of a value that a schema does not have."""
    if isinstance(value, list):
        for entry in value:
            yield from unknown(entry, tree["items"], f"{path}[]")
    elif isinstance(value, dict) and "additionalProperties" not in tree:
        for name, below in value.items():
            if name in tree.get("properties", {}):
                yield from unknown(below, tree["properties"][name], f"{path}.{name}")
            elif not tree.get("x-kubernetes-preserve-unknown-fields"):
                yield f"{path}.{name}"


KINDS = pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)


@KINDS
def test_definition_is_up_to_date(resource: Resource) -> None:
    assert (FILE.parent / f"{resource.plural}.yaml").read_text() == page(resource), "run: make manifests"


@KINDS
def test_definition_fits_into_the_annotation_of_kubectl_apply(resource: Resource) -> None:
    stored = json.dumps(yamltext.load(page(resource)), separators=(",", ":"))
    assert len(stored) < LARGEST_ANNOTATION


@KINDS
def test_defaults_complete_no_optional_object_that_has_required_fields(resource: Resource) -> None:
    """The API server would add the object with its defaults, and then reject it."""
    wrong = [path for path, node in nodes(resource.spec, "spec") if "default" in node and "required" in node]
    assert wrong == []


@pytest.mark.parametrize(
    ("kind", "fields", "status"),
    [
        (names.USER_KIND, UserFields, UserStatus),
        (names.QUEUE_KIND, QueueFields, QueueStatus),
        (names.SCHEDULE_KIND, ScheduleFields, ScheduleStatus),
        (names.BACKUP_KIND, BackupFields, BackupRunStatus),
    ],
)
def test_schema_of_parts_has_exactly_the_fields_of_the_models(
    kind: str, fields: type[Section], status: type[UserStatus | QueueStatus | ScheduleStatus | BackupRunStatus]
) -> None:
    resource = next(resource for resource in RESOURCES if resource.kind == kind)
    assert set(resource.spec["properties"]) == {field_name(name) for name in fields.model_fields}
    assert set(resource.status["properties"]) == {field_name(name) for name in status.model_fields}
    described = [(path, node) for path, node in nodes(resource.spec, "spec") if not path.endswith("[]")]
    assert [path for path, node in described if not node.get("description", "").endswith(".")] == []


def test_all_versions_have_the_same_fields_so_that_the_api_server_can_convert_them() -> None:
    definition = yamltext.load(FILE.read_text())["spec"]
    assert definition["conversion"] == {"strategy": "None"}
    first, *others = definition["versions"]
    assert [one["name"] for one in definition["versions"]] == ["v1alpha1", "v1beta1"]
    assert [one["storage"] for one in definition["versions"]] == [True, False], "earlier releases know only v1alpha1"
    for other in others:
        assert (
            other["schema"]["openAPIV3Schema"]["properties"].pop("apiVersion")["description"] == "disque.dev/v1beta1."
        )
    first["schema"]["openAPIV3Schema"]["properties"].pop("apiVersion")
    assert all(other | {"name": first["name"], "storage": True} == first for other in others)


def test_schema_has_exactly_the_fields_of_the_model() -> None:
    assert set(schema("spec")["properties"]) == {field_name(name) for name in SpecFields.model_fields}


def test_defaults_of_schema_and_parser_are_equal() -> None:
    assert parse({"metadata": METADATA, "spec": with_defaults({}, schema("spec"))}) == Spec(
        name="jobs", namespace="shop"
    )


def test_schema_knows_every_field() -> None:
    assert set(EVERYTHING) == set(schema("spec")["properties"])
    assert list(unknown(EVERYTHING, schema("spec"))) == []


@pytest.mark.parametrize("name", sorted(path.stem for path in SAMPLES.glob("*.yaml")))
def test_samples_use_only_fields_of_the_schema(name: str) -> None:
    clusters = [body for body in sample(name) if body["kind"] == names.KIND]
    assert [field for body in clusters for field in unknown(body["spec"], schema("spec"))] == []


@pytest.mark.parametrize("part", ["spec", "status"])
def test_every_field_has_a_description(part: str) -> None:
    fields = [(path, node) for path, node in nodes(schema(part), part) if not path.endswith("[]")]
    ours = [(path, node) for path, node in fields if not path.startswith(FOREIGN)]
    assert [path for path, node in ours if not node.get("description", "").endswith(".")] == []


def test_every_rule_has_a_message() -> None:
    root = version()["schema"]["openAPIV3Schema"]
    rules = [rule for _, node in nodes(root) for rule in node.get("x-kubernetes-validations", ())]
    assert len(rules) > 40
    assert [rule["rule"] for rule in rules if len(rule["message"]) < 20 or "\n" in rule["message"]] == []


def test_values_that_rules_read_are_bounded() -> None:
    """The cost limit of rules is computed from the largest possible value."""
    unbounded = []
    for path, node in nodes(schema("spec")["properties"]["config"], "config"):
        if node.get("type") == "string" and "maxLength" not in node:
            unbounded.append(path)
        if "additionalProperties" in node and "maxProperties" not in node:
            unbounded.append(path)
    assert unbounded == []


def test_every_directive_is_either_free_or_owned() -> None:
    known = {option.name for option in OPTIONS if option.in_file}
    assert {option.name for option in FREE} | set(OWNED) == known | {"include"}
    assert not {option.name for option in FREE} & set(OWNED)


def test_printer_columns_scale_and_short_names() -> None:
    assert set(version()["subresources"]) == {"status", "scale"}
    columns = [column["name"] for column in version()["additionalPrinterColumns"] if not column["priority"]]
    assert columns == ["Desired", "Ready", "Formed", "Phase", "Jobs", "Version", "Age"]
    called = yamltext.load(FILE.read_text())["spec"]["names"]
    assert (called["shortNames"], called["categories"]) == (["dq"], ["all"])


WITHOUT_MODELS = """
import sys
for name in ("kubernetes.client.models.v1_affinity", "kubernetes.client.models.v1_resource_requirements"):
    sys.modules[name] = None
import disque_operator.schema.definition
"""


def test_definitions_are_imported_without_the_models_of_the_kubernetes_client() -> None:
    """Images do not have these models, and their build imports every module."""
    subprocess.run([sys.executable, "-c", WITHOUT_MODELS], check=True)
