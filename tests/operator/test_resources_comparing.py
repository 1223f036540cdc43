"""The comparison of live objects with manifests, and strategic merge."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.resources import differs
from disque_operator.resources.merging import merge
from support.manifests import bodies, children

ALL = [manifest for body in bodies().values() for manifest in children(body)]
MINIMAL = {manifest["kind"]: manifest for manifest in children(bodies()["minimal"])}
STATEFUL_SET, SERVICE, POLICY = MINIMAL["StatefulSet"], MINIMAL["Service"], MINIMAL["NetworkPolicy"]

values = st.recursive(
    st.one_of(st.integers(), st.text(max_size=5), st.booleans()),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=5), below, max_size=3),
    max_leaves=10,
)
manifests = st.dictionaries(st.text(min_size=1, max_size=5), values, max_size=5).map(
    lambda fields: {"kind": "Thing", "spec": fields}
)


def edited(manifest: Json, *path: str | int, to: object) -> Json:
    live = copy.deepcopy(manifest)
    place: Any = live
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return live


def without(manifest: Json, *path: str | int) -> Json:
    live = copy.deepcopy(manifest)
    place: Any = live
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    return live


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict) and value:
        return [leaf for name, below in value.items() for leaf in leaves(below, (*path, name))]
    if isinstance(value, list) and value:
        return [leaf for number, below in enumerate(value) for leaf in leaves(below, (*path, number))]
    return [] if isinstance(value, dict | list) else [path]


@given(manifests)
def test_unchanged_object_does_not_differ(manifest: Json) -> None:
    assert differs(manifest, copy.deepcopy(manifest)) == ""


@given(manifests, st.data())
def test_change_of_any_value_is_a_difference(manifest: Json, data: st.DataObject) -> None:
    paths = leaves(manifest["spec"])
    if paths:
        path = data.draw(st.sampled_from(paths))
        assert differs(manifest, edited(manifest, "spec", *path, to=["changed"])) != ""


@pytest.mark.parametrize("manifest", ALL, ids=lambda manifest: f"{manifest['metadata']['name']} {manifest['kind']}")
def test_removal_of_any_field_is_a_difference(manifest: Json) -> None:
    watched = [path for path in leaves(manifest) if path[0] not in {"apiVersion", "kind"}]
    unseen = [path for path in watched if differs(manifest, edited(manifest, *path, to="changed by hand")) == ""]
    assert unseen == []


@pytest.mark.parametrize(
    "fill",
    [
        lambda live: live["metadata"].update(resourceVersion="5", managedFields=[{}], generation=2),
        lambda live: live["metadata"]["labels"].update(team="theirs"),
        lambda live: live["metadata"]["annotations"].update({"cloud.example/id": "17"}),
        lambda live: live["spec"]["template"]["spec"].update(dnsPolicy="ClusterFirst", schedulerName="x"),
        lambda live: live["spec"]["template"]["spec"]["containers"][0].update(terminationMessagePath="/dev/x"),
        lambda live: live["spec"]["template"]["spec"]["containers"].insert(0, {"name": "injected"}),
        lambda live: live["spec"]["template"]["spec"]["volumes"].reverse(),
        lambda live: live["spec"]["template"]["spec"]["containers"][0]["volumeMounts"].reverse(),
        lambda live: live["spec"]["volumeClaimTemplates"][0].update(status={"phase": "Pending"}),
        lambda live: live.update(status={"replicas": 3}),
        lambda live: (live.pop("kind"), live.pop("apiVersion")),
    ],
)
def test_fields_of_others_are_not_a_difference(fill: Callable[[Json], object]) -> None:
    live = copy.deepcopy(STATEFUL_SET)
    fill(live)
    assert differs(STATEFUL_SET, live) == ""


POD = ("spec", "template", "spec")


@pytest.mark.parametrize(
    ("live", "field"),
    [
        (None, "metadata"),
        (edited(STATEFUL_SET, "spec", "replicas", to=7), "spec.replicas"),
        (edited(STATEFUL_SET, *POD, "containers", 0, "image", to="x"), "spec.template.spec.containers[broker].image"),
        (without(STATEFUL_SET, *POD, "containers", 0, "lifecycle"), "spec.template.spec.containers[broker].lifecycle"),
        (
            without(STATEFUL_SET, *POD, "automountServiceAccountToken"),
            "spec.template.spec.automountServiceAccountToken",
        ),
        (without(STATEFUL_SET, *POD, "volumes", 0), "spec.template.spec.volumes[config]"),
        (edited(STATEFUL_SET, *POD, "containers", 0, "args", to=["x"]), "spec.template.spec.containers[broker].args"),
        (without(STATEFUL_SET, "metadata", "ownerReferences"), "metadata.ownerReferences"),
        (
            edited(STATEFUL_SET, "metadata", "annotations", names.APPLIED, to="older"),
            f"metadata.annotations.{names.APPLIED}",
        ),
    ],
)
def test_path_of_the_difference_is_returned(live: Json | None, field: str) -> None:
    assert differs(STATEFUL_SET, live) == field


def test_rule_added_to_a_policy_is_a_difference() -> None:
    live = copy.deepcopy(POLICY)
    live["spec"]["ingress"][0]["ports"].append({"protocol": "TCP", "port": 22})
    assert differs(POLICY, live) == "spec.ingress[0].ports"


def test_port_added_to_a_service_is_not_a_difference() -> None:
    live = copy.deepcopy(SERVICE)
    live["spec"]["ports"].insert(0, {"name": "theirs", "port": 1, "protocol": "TCP"})
    assert differs(SERVICE, live) == ""


@pytest.mark.parametrize(
    ("wanted", "live", "same"),
    [
        (
            {"resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}}},
            {"resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}},
            True,
        ),
        ({"resources": {"limits": {"cpu": "1"}}}, {"resources": {"limits": {"cpu": "2"}}}, False),
        ({"emptyDir": {"sizeLimit": "1024Ki"}}, {"emptyDir": {"sizeLimit": "1Mi"}}, True),
        ({"args": ["1024Ki"]}, {"args": ["1Mi"]}, False),
        ({"nodeSelector": {}, "tolerations": [], "x": None, "y": ""}, {}, True),
        ({"hostNetwork": False, "initialDelaySeconds": 0}, {}, True),
        ({"hostNetwork": True}, {}, False),
        ({"automountServiceAccountToken": False}, {}, False),
        ({"replicas": 0}, {}, False),
        ({"ipFamilies": ["IPv4"]}, {"ipFamilies": ["IPv4", "IPv6"]}, True),
        ({"ipFamilies": ["IPv6", "IPv4"]}, {"ipFamilies": ["IPv6"]}, False),
        ({"ipFamilies": ["IPv6"]}, {"ipFamilies": ["IPv4", "IPv6"]}, False),
    ],
    ids=str,
)
def test_normalisation_by_the_api_server_is_not_a_difference(wanted: Json, live: Json, same: bool) -> None:
    assert (differs({"kind": "Thing", "spec": wanted}, {"spec": live}) == "") == same


@pytest.mark.parametrize(
    ("base", "over", "merged"),
    [
        ({"a": 1, "b": 2}, {"b": 3}, {"a": 1, "b": 3}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"a": {"b": 1}}, {"a": None}, {}),
        ({"a": {"b": 1}}, {"a": {"b": None}}, {"a": {}}),
        ({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({"args": [1]}, {"args": [2]}, {"args": [2]}),
        (
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "B"}]},
            {"env": [{"name": "A", "value": "1"}, {"name": "B"}]},
        ),
        (
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "value": "2"}]},
            {"env": [{"name": "A", "value": "2"}]},
        ),
        ({"env": [{"name": "A"}]}, {"env": None}, {"env": [{"name": "A"}]}),
        ({}, {"volumes": [{"name": "v"}]}, {"volumes": [{"name": "v"}]}),
    ],
    ids=str,
)
def test_strategic_merge(base: Json, over: Json, merged: Json) -> None:
    before = copy.deepcopy((base, over))
    assert merge(base, over) == merged
    assert (base, over) == before
