from __future__ import annotations

import re

import pytest

from disque_operator.apivalues import Json, amount
from disque_operator.problems import problems
from disque_operator.spec import Spec, field_name, parse
from support.manifests import EVERYTHING

METADATA = {"name": "jobs", "namespace": "shop", "uid": "u", "generation": 7}


def spec_of(**fields: object) -> Spec:
    return parse({"metadata": METADATA, "spec": fields})


def told(spec: Spec) -> list[str]:
    return [str(problem) for problem in problems(spec)]


def test_an_empty_spec_has_every_default() -> None:
    assert spec_of() == Spec(name="jobs", namespace="shop", uid="u", generation=7)


def test_sections_that_are_missing_empty_or_null_have_their_defaults() -> None:
    assert spec_of(storage=None, auth={}, drain={"onTimeout": None}, networkPolicy=None, tolerations=None) == spec_of()


def test_every_field_is_read() -> None:
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
    assert (spec.drain.timeout_s, spec.drain.on_timeout) == (60, "Handoff")
    assert (spec.upgrade.soak_s, spec.upgrade.timeout_s) == (1, 60)
    assert spec.topology_spread_constraints is not None
    assert spec.topology_spread_constraints[0]["whenUnsatisfiable"] == "DoNotSchedule"
    assert spec.affinity == EVERYTHING["affinity"]
    assert spec.tolerations == tuple(EVERYTHING["tolerations"])
    assert (spec.node_selector, spec.priority_class_name) == ({"kubernetes.io/os": "linux"}, "system-cluster-critical")
    assert spec.pod_template == EVERYTHING["podTemplate"]


def test_what_stands_in_metadata_is_read() -> None:
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
def test_attributes_are_called_as_people_write_them(attribute: str, field: str) -> None:
    assert field_name(attribute) == field


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"replicas": 101}, "spec.replicas: Input should be less than or equal to 100, not 101"),
        ({"drain": {"timeoutSeconds": "soon"}}, "spec.drain.timeoutSeconds: Input should be a valid integer.*'soon'"),
        ({"drain": {"onTimeout": "Drop"}}, "spec.drain.onTimeout: Input should be 'Wait', 'Handoff' or 'Force'"),
        ({"imagePullSecrets": [{}]}, r"spec.imagePullSecrets\[0\].name: Field required"),
    ],
)
def test_a_value_that_an_older_definition_accepted_is_a_problem_and_has_its_default(
    fields: Json, expected: str
) -> None:
    spec = spec_of(paused=True, **fields)
    (problem,) = told(spec)
    assert re.match(expected, problem)
    assert spec.model_copy(update={"invalid": ()}) == spec_of(paused=True)


@pytest.mark.parametrize("fields", [{}, EVERYTHING], ids=["nothing", "everything"])
def test_what_can_be_done_has_no_problems(fields: Json) -> None:
    assert told(spec_of(**fields)) == []


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
def test_a_problem_says_what_to_do(fields: Json, expected: str) -> None:
    (problem,) = told(spec_of(**fields))
    assert re.match(expected, problem)


def test_job_loss_may_be_agreed_to() -> None:
    metadata = METADATA | {"annotations": {"disque.dev/allow-job-loss": "true"}}
    assert told(parse({"metadata": metadata, "spec": {"drain": {"onTimeout": "Force"}}})) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "1000m"), ("0.5", "500m"), ("1024Mi", "1Gi"), ("1k", "1000"), ("2e3", "2k"), ("1.5Gi", "1536Mi"), (1, "1")],
)
def test_quantities_are_numbers(one: object, other: object) -> None:
    assert amount(one) == amount(other) is not None


@pytest.mark.parametrize("text", ["", "1gb", "Gi", "1 Gi", None, "1ki", "--1"])
def test_what_is_no_quantity_is_none(text: object) -> None:
    assert amount(text) is None
