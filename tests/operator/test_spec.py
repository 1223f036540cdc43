from __future__ import annotations

import re

import pytest

from disque_operator.apivalues import Json, amount
from disque_operator.problems import problems
from disque_operator.sections import field_name
from disque_operator.spec import Spec, parse
from support.manifests import EVERYTHING

METADATA = {"name": "jobs", "namespace": "shop", "uid": "u", "generation": 7}


def spec_of(**fields: object) -> Spec:
    return parse({"metadata": METADATA, "spec": fields})


def messages(spec: Spec) -> list[str]:
    return [str(problem) for problem in problems(spec)]


def test_empty_spec_has_all_defaults() -> None:
    assert spec_of() == Spec(name="jobs", namespace="shop", uid="u", generation=7)


def test_missing_empty_and_null_sections_have_defaults() -> None:
    assert spec_of(storage=None, auth={}, drain={"onTimeout": None}, networkPolicy=None, tolerations=None) == spec_of()


def test_every_field_is_parsed() -> None:
    spec = spec_of(**EVERYTHING)
    assert (spec.replicas, spec.min_replicas, [secret.name for secret in spec.image_pull_secrets]) == (
        5,
        2,
        ["registry"],
    )
    assert (spec.storage.size, spec.storage.class_name) == ("4Gi", "fast")
    assert (spec.storage.retention.when_deleted, spec.storage.retention.when_scaled) == ("Delete", "Retain")
    assert (spec.persistence.fsync, spec.auth.rotation, spec.auth.grace_s) == ("always", 3, 60)
    assert (spec.service.type, spec.service.port) == ("LoadBalancer", 7000)
    assert (spec.pod_disruption_budget.max_unavailable, len(spec.network_policy.clients)) == (2, 1)
    assert (spec.drain.timeout_s, spec.drain.on_timeout) == (60, "Retain")
    assert (spec.upgrade.soak_s, spec.upgrade.timeout_s) == (1, 60)
    assert spec.topology_spread_constraints is not None
    assert spec.topology_spread_constraints[0]["whenUnsatisfiable"] == "DoNotSchedule"
    assert spec.affinity == EVERYTHING["affinity"]
    assert spec.tolerations == tuple(EVERYTHING["tolerations"])
    assert (spec.node_selector, spec.priority_class_name) == ({"kubernetes.io/os": "linux"}, "system-cluster-critical")
    assert spec.pod_template == EVERYTHING["podTemplate"]


def test_metadata_is_parsed() -> None:
    metadata = METADATA | {"annotations": {"disque.dev/restart-at": "now"}, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    spec = parse({"metadata": metadata, "spec": {}})
    assert spec.deleting
    assert spec.annotations == {"disque.dev/restart-at": "now"}


@pytest.mark.parametrize(
    ("attribute", "field"),
    [
        ("min_replicas", "minReplicas"),
        ("timeout_s", "timeoutSeconds"),
        ("pod_disruption_budget", "podDisruptionBudget"),
        ("image", "image"),
    ],
)
def test_field_names(attribute: str, field: str) -> None:
    assert field_name(attribute) == field


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"replicas": 101}, "spec.replicas: Input should be less than or equal to 100, not 101"),
        ({"drain": {"timeoutSeconds": "soon"}}, "spec.drain.timeoutSeconds: Input should be a valid integer.*'soon'"),
        ({"drain": {"onTimeout": "Drop"}}, "spec.drain.onTimeout: Input should be 'Wait', 'Retain' or 'Force'"),
        ({"imagePullSecrets": [{}]}, r"spec.imagePullSecrets\[0\].name: Field required"),
    ],
)
def test_value_accepted_by_an_older_definition_is_a_problem_and_has_its_default(fields: Json, expected: str) -> None:
    spec = spec_of(paused=True, **fields)
    (problem,) = messages(spec)
    assert re.match(expected, problem)
    assert spec.model_copy(update={"invalid": ()}) == spec_of(paused=True)


@pytest.mark.parametrize("fields", [{}, EVERYTHING], ids=["nothing", "everything"])
def test_valid_spec_has_no_problems(fields: Json) -> None:
    assert messages(spec_of(**fields)) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"drain": {"onTimeout": "Force"}},
            'spec.drain.onTimeout: Force drops.*annotation disque.dev/allow-job-loss: "true"',
        ),
        ({"config": {"hz": "fast"}}, "spec.config.hz: invalid value 'fast': argument must be a whole number"),
        ({"config": {"hz": "'1"}}, "spec.config.hz: .*unbalanced quotes"),
        ({"config": {"tcp-keepalive": "x"}}, "spec.config.tcp-keepalive: .*Invalid tcp-keepalive value"),
        ({"config": {"HZ": "1"}}, "spec.config.HZ: is not a directive of the broker: .*lower case"),
        ({"config": {"port": "1"}}, "spec.config.port: only the operator sets it: .*spec.service.port"),
        ({"config": {"maxmemory": "1gb"}}, "spec.config.maxmemory: only the operator sets it: set spec.maxmemory"),
        ({"maxmemory": "512Mi"}, "spec.maxmemory: invalid value '512Mi': .*Use auto, 75% or 1gb"),
        (
            {"maxmemory": "2gb", "resources": {"limits": {"memory": "1Gi"}}},
            "spec.maxmemory: 2gb exceeds the memory limit of the container, 1Gi: use auto",
        ),
        ({"resources": {"limits": {"memory": "much"}}}, "spec.resources.limits.memory: 'much' is not a quantity"),
        ({"storage": {"size": "big"}}, "spec.storage.size: 'big' is not a quantity"),
        (
            {"storage": {"ephemeral": True}},
            "spec.persistence.appendonly: storage.ephemeral keeps no files: set it to false",
        ),
        (
            {"storage": {"ephemeral": True}, "persistence": {"appendonly": False}, "hibernate": True},
            "spec.hibernate: storage.ephemeral keeps no jobs",
        ),
        ({"podTemplate": {"spec": []}}, "spec.podTemplate.spec: must be an object"),
        (
            {"podTemplate": {"spec": {"containers": [{}]}}},
            "spec.podTemplate.spec.containers: must be a list of objects with a name",
        ),
        (
            {"podTemplate": {"spec": {"containers": [{"name": "broker", "image": "x"}]}}},
            r"spec.podTemplate.spec.containers\[broker\].image: only the operator sets it: set spec.image",
        ),
        (
            {"podTemplate": {"metadata": {"labels": {"disque.dev/cluster": "x"}}}},
            r"spec.podTemplate.metadata.labels\[disque.dev/cluster\]: only the operator sets it",
        ),
    ],
    ids=str,
)
def test_problem_is_reported_with_advice(fields: Json, expected: str) -> None:
    (problem,) = messages(spec_of(**fields))
    assert re.match(expected, problem)


def test_annotation_allows_job_loss() -> None:
    metadata = METADATA | {"annotations": {"disque.dev/allow-job-loss": "true"}}
    assert messages(parse({"metadata": metadata, "spec": {"drain": {"onTimeout": "Force"}}})) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "1000m"), ("0.5", "500m"), ("1024Mi", "1Gi"), ("1k", "1000"), ("2e3", "2k"), ("1.5Gi", "1536Mi"), (1, "1")],
)
def test_quantities_are_parsed(one: object, other: object) -> None:
    assert amount(one) == amount(other) is not None


@pytest.mark.parametrize("text", ["", "1gb", "Gi", "1 Gi", None, "1ki", "--1"])
def test_invalid_quantity_is_none(text: object) -> None:
    assert amount(text) is None
