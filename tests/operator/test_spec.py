from __future__ import annotations

import re

import pytest

from disque_operator.problems import problems
from disque_operator.quantities import amount
from disque_operator.spec import Json, Spec, field_name, parse
from support.manifests import EVERYTHING

METADATA = {"name": "jobs", "namespace": "shop", "uid": "u", "generation": 7}


def spec_of(**fields: object) -> Spec:
    return parse({"metadata": METADATA, "spec": fields})


def told(spec: Spec) -> list[str]:
    return [str(problem) for problem in problems(spec)]


def test_an_empty_spec_has_every_default() -> None:
    assert spec_of() == Spec("jobs", "shop", "u", 7)


def test_sections_that_are_missing_empty_or_null_have_their_defaults() -> None:
    assert spec_of(storage=None, auth={}, drain={"onTimeout": None}, networkPolicy=None, tolerations=None) == spec_of()


def test_every_field_is_read() -> None:
    spec = spec_of(**EVERYTHING)
    assert (spec.replicas, spec.min_replicas, spec.image_pull_secrets) == (5, 2, ("registry",))
    assert (spec.storage.size, spec.storage.class_name) == ("4Gi", "fast")
    assert (spec.storage.when_deleted, spec.storage.when_scaled) == ("Delete", "Retain")
    assert (spec.persistence.fsync, spec.auth.rotation, spec.auth.grace_s) == ("always", 3, 60)
    assert (spec.service.type, spec.service.port) == ("LoadBalancer", 7000)
    assert (spec.budget.max_unavailable, len(spec.network.clients)) == (2, 1)
    assert (spec.drain.timeout_s, spec.drain.on_timeout) == (60, "Handoff")
    assert (spec.upgrade.soak_s, spec.upgrade.timeout_s) == (1, 60)
    assert spec.topology_spread is not None
    assert spec.topology_spread[0]["whenUnsatisfiable"] == "DoNotSchedule"
    assert spec.affinity == EVERYTHING["affinity"]
    assert spec.tolerations == tuple(EVERYTHING["tolerations"])
    assert (spec.node_selector, spec.priority_class) == ({"kubernetes.io/os": "linux"}, "system-cluster-critical")
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
        ("budget", "podDisruptionBudget"),
        ("image", "image"),
    ],
)
def test_attributes_are_called_as_people_write_them(attribute: str, field: str) -> None:
    assert field_name(attribute) == field


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
        ({"config": {"hz": "fast"}}, "spec.config.hz: 'fast' is not accepted: argument must be a whole number"),
        ({"config": {"hz": "'1"}}, "spec.config.hz: .*quotes are not closed"),
        ({"config": {"tcp-keepalive": "x"}}, "spec.config.tcp-keepalive: .*Invalid tcp-keepalive value"),
        ({"config": {"HZ": "1"}}, "spec.config.HZ: is no directive of the broker: .*lower case"),
        ({"config": {"port": "1"}}, "spec.config.port: the operator sets it: .*spec.service.port"),
        ({"config": {"maxmemory": "1gb"}}, "spec.config.maxmemory: the operator sets it: write it to spec.maxmemory"),
        ({"maxmemory": "512Mi"}, "spec.maxmemory: '512Mi' is not accepted: .*Write auto, 75% or 1gb"),
        (
            {"maxmemory": "2gb", "resources": {"limits": {"memory": "1Gi"}}},
            "spec.maxmemory: 2gb is more than the memory limit of the container, 1Gi: write auto",
        ),
        ({"resources": {"limits": {"memory": "much"}}}, "spec.resources.limits.memory: 'much' is no quantity"),
        ({"storage": {"size": "big"}}, "spec.storage.size: 'big' is no quantity"),
        (
            {"storage": {"ephemeral": True}},
            "spec.persistence.appendonly: storage.ephemeral keeps no files: write false",
        ),
        (
            {"storage": {"ephemeral": True}, "persistence": {"appendonly": False}, "hibernate": True},
            "spec.hibernate: storage.ephemeral keeps no jobs",
        ),
        ({"podTemplate": {"spec": []}}, "spec.podTemplate.spec: is no object"),
        ({"podTemplate": {"spec": {"containers": [{}]}}}, "spec.podTemplate.spec.containers: .*a name each"),
        (
            {"podTemplate": {"spec": {"containers": [{"name": "broker", "image": "x"}]}}},
            r"spec.podTemplate.spec.containers\[broker\].image: the operator sets it: write it to spec.image",
        ),
        (
            {"podTemplate": {"metadata": {"labels": {"disque.dev/cluster": "x"}}}},
            r"spec.podTemplate.metadata.labels\[disque.dev/cluster\]: the operator sets it",
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
