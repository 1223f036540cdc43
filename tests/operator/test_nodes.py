"""Kubernetes nodes: zones of pods become zones of brokers, and members without a volume leave a cordoned node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from disque_operator import names, observe
from disque_operator.apivalues import Json
from disque_operator.kube import KubeError
from disque_operator.members import ClusterView
from disque_operator.nodes import FORBIDDEN_S, KEPT_S, Nodes
from disque_operator.observe import Objects
from disque_operator.observed import Leaving, Node, Pod
from disque_operator.spec import Persistence, Spec, Storage
from support.kubeworld.evictions import drain_node
from support.kubeworld.scenario import Scenario, a_spec, check_settled
from support.kubeworld.values import (
    at_rest,
    broker,
    broker_of,
    decided,
    name_of,
    planned,
    pod,
    reported,
    seen,
    unreachable,
)
from support.kubeworld.world import ZONES

LEAVING = Leaving(done=False, jobs_left=5, rate=1.0, seconds_left=5.0, seconds_elapsed=10.0)
DONE = replace(LEAVING, done=True, jobs_left=0)


class ApiStub:
    """Has nodes, and counts how often they are read."""

    def __init__(self, **nodes: Json) -> None:
        self.nodes = nodes
        self.reads: list[str] = []
        self.status = 0
        """The HTTP status of all replies, if it is an error."""

    async def get(self, kind: str, namespace: str | None, name: str) -> Json | None:
        assert (kind, namespace) == ("Node", None)
        self.reads.append(name)
        if self.status:
            raise KubeError(self.status, "refused")
        return self.nodes.get(name)


def a_node(zone: str = "", **spec: Any) -> Json:
    return {"metadata": {"labels": {names.ZONE_LABEL: zone} if zone else None}, "spec": spec}


class Reader:
    """Nodes with a clock."""

    def __init__(self, api: ApiStub) -> None:
        self.now_s = 1000.0
        self._nodes = Nodes(api, lambda: self.now_s)  # type: ignore[arg-type]  # only `get` is used

    def read(self, *wanted: str) -> object:
        return asyncio.run(self._nodes.read(wanted))


# --- reading nodes ----------------------------------------------------------------------------------------------------


def test_zone_and_cordon_are_read() -> None:
    api = ApiStub(one=a_node("east"), two=a_node(unschedulable=True))
    assert Reader(api).read("one", "two", "gone") == {"one": Node("east"), "two": Node(cordoned=True)}


def test_clusters_share_what_was_read() -> None:
    api = ApiStub(one=a_node(), two=a_node())
    reader = Reader(api)
    for _ in range(3):
        reader.read("one", "two")
    reader.read("two")
    assert api.reads == ["one", "two"]
    api.nodes["one"] = a_node(unschedulable=True)
    reader.now_s += KEPT_S
    assert reader.read("one") == {"one": Node(cordoned=True)}


def test_operator_without_the_permission_asks_again_later() -> None:
    api = ApiStub(one=a_node("east"))
    api.status = 403
    reader = Reader(api)
    assert [reader.read("one"), reader.read("one")] == [None, None]
    assert api.reads == ["one"]
    api.status = 0
    reader.now_s += FORBIDDEN_S
    assert reader.read("one") == {"one": Node("east")}


def test_other_errors_fail_the_round() -> None:
    api = ApiStub()
    api.status = 500
    with pytest.raises(KubeError):
        Reader(api).read("one")


# --- pods -------------------------------------------------------------------------------------------------------------


def a_pod(labels: dict[str, str] | None = None, **spec: Any) -> Json:
    metadata = {"name": "c-0", "uid": "u", "creationTimestamp": "2026-01-01T11:59:00Z", "labels": labels or {}}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": "one", "containers": []} | spec}


def observed(item: Json, nodes: dict[str, Node] | None) -> Pod:
    spec = Spec(name="c", namespace="ns")
    found = Objects({("Pod", "c-0"): item}, None, (), nodes=nodes)
    (only,) = asyncio.run(observe.observe_cluster(spec, {}, found, 0.0)).observed.pods
    return only


@pytest.mark.parametrize(
    ("labels", "nodes", "zone"),
    [
        ({}, {"one": Node("east")}, "east"),
        ({}, {"other": Node("east")}, ""),
        ({}, None, ""),
        ({names.ZONE_LABEL: "west"}, None, "west"),
        ({names.ZONE_LABEL: "west"}, {"one": Node("west")}, "west"),
    ],
    ids=str,
)
def test_zone_of_a_pod(labels: dict[str, str], nodes: dict[str, Node] | None, zone: str) -> None:
    assert observed(a_pod(labels), nodes).zone == zone


@pytest.mark.parametrize(
    ("tolerations", "leaves"),
    [
        ([], True),
        ([{"key": "dedicated", "operator": "Exists"}], True),
        ([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}], False),
        ([{"operator": "Exists"}], False),
    ],
    ids=str,
)
def test_pod_that_tolerates_cordoned_nodes_stays(tolerations: list[Json], leaves: bool) -> None:
    assert observed(a_pod(tolerations=tolerations), {"one": Node(cordoned=True)}).cordoned == leaves


def test_only_nodes_with_pods_of_the_cluster_are_needed() -> None:
    pods = {("Pod", "c-0"): a_pod(), ("Pod", "c-1"): a_pod(nodeName="")}
    assert observe.nodes_of(Objects(pods, None, ())) == {"one"}


# --- zones ------------------------------------------------------------------------------------------------------------


def with_zone(view: ClusterView, zone: str | None) -> ClusterView:
    """Return the view with another zone in the second broker; None for a broker that has no such directive."""
    config = {name: text for name, text in broker_of(view, 1).config.items() if name != "cluster-zone"}
    return broker(view, 1, config=config if zone is None else config | {"cluster-zone": zone})


def test_broker_gets_the_zone_of_its_pod() -> None:
    assert decided(with_zone(at_rest(), "")) == ["mail-1: CONFIG SET cluster-zone west"]
    assert decided(with_zone(at_rest(), "moved")) == ["mail-1: CONFIG SET cluster-zone west"]


def test_zone_of_a_broker_is_kept_if_that_of_its_pod_is_unknown() -> None:
    assert decided(pod(with_zone(at_rest(), "set-by-hand"), 1, zone="")) == []


def test_broker_of_an_earlier_release_has_no_zone() -> None:
    assert decided(with_zone(at_rest(), None)) == []


def test_restarted_broker_gets_its_zone_again() -> None:
    scenario = Scenario(load=False)
    scenario.settle()
    scenario.world.crash("mail-0")
    scenario.settle()
    zones = {name: process.config["cluster-zone"] for name, process in scenario.world.bus.running.items()}
    assert zones == {name: ZONES[scenario.world.pods[name].node] for name in scenario.world.pods}


# --- cordoned nodes ---------------------------------------------------------------------------------------------------

CORDONED: dict[str, tuple[Callable[[ClusterView], ClusterView], list[str]]] = {
    "it is drained first": (lambda view: view, ["mail-1: CLUSTER LEAVING yes"]),
    "it is transferring its jobs": (lambda view: broker(view, 1, leaving=LEAVING), []),
    "it is drained": (lambda view: broker(view, 1, leaving=DONE), ["replace mail-1"]),
    "another member is not ready": (lambda view: pod(view, 2, ready=False), []),
    "it crashed": (
        lambda view: unreachable(view, 1, ready=False, trouble="CrashLoopBackOff", restarts=3),
        ["replace mail-1"],
    ),
}


@pytest.mark.parametrize("case", CORDONED)
def test_member_without_a_volume_leaves_a_cordoned_node(case: str) -> None:
    change, expected = CORDONED[case]
    assert decided(change(pod(at_rest(ephemeral=True), 1, cordoned=True))) == expected


def test_member_with_a_volume_waits_for_its_eviction() -> None:
    assert decided(pod(at_rest(), 1, cordoned=True)) == []


def test_single_member_without_a_volume_stays_on_a_cordoned_node_while_it_has_jobs() -> None:
    view = pod(at_rest(1, ephemeral=True), 0, cordoned=True)
    assert decided(view) == [f"replace {name_of(view, 0)}"]
    assert decided(broker(view, 0, jobs=3)) == []
    assert reported(broker(view, 0, jobs=3), "Degraded") == ("True", "SingleMember")


def budget(view: ClusterView) -> Json | None:
    """Return the limits of the PodDisruptionBudget that the next round would apply to a cluster without one."""
    children = {key: item for key, item in view.observed.children.items() if key[0] != "PodDisruptionBudget"}
    manifests = [action.manifest for action in planned(seen(view, children=children)).actions]  # type: ignore[union-attr]
    found = [manifest["spec"] for manifest in manifests if manifest["kind"] == "PodDisruptionBudget"]
    return {name: value for name, value in found[0].items() if name != "selector"} if found else None


@pytest.mark.parametrize("replicas", [1, 3])
def test_members_without_a_volume_are_not_evicted(replicas: int) -> None:
    assert budget(at_rest(replicas, ephemeral=True)) == {"maxUnavailable": 0}


def test_members_without_a_volume_are_evicted_if_the_operator_cannot_see_cordoned_nodes() -> None:
    blind = seen(at_rest(ephemeral=True), sees_nodes=False)
    assert budget(blind) == {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    assert budget(seen(at_rest(1, ephemeral=True), sees_nodes=False)) is None


@pytest.mark.parametrize("ephemeral", [True, False])
def test_a_drained_node_loses_its_pods_and_no_job(ephemeral: bool) -> None:
    fields = {"storage": Storage(ephemeral=True), "persistence": Persistence(appendonly=False)} if ephemeral else {}
    scenario = Scenario(a_spec(replicas=5, **fields), load=False)
    scenario.settle()
    for _ in range(30):
        assert scenario.add()
    world = scenario.world
    node = world.pods["mail-0"].node
    assert [name for name, one in world.pods.items() if one.node == node] == ["mail-0", "mail-3"]

    def evicted() -> bool:
        drain_node(world, node)
        return not any(one.node == node for one in world.pods.values())

    scenario.until(evicted)
    scenario.settle()
    assert {one.node for one in world.pods.values()} == set(ZONES) - {node}
    check_settled(scenario)
    assert not world.destroyed
