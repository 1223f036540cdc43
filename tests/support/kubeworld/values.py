"""A healthy cluster as a view, and functions that return it with small changes, for tables of decisions."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from typing import Any

from disque_operator.actions import Action, Apply, Command, Create, DeleteChild, DeletePod, Issue, WriteStatus
from disque_operator.apivalues import Json
from disque_operator.decisions import Plan
from disque_operator.members import ClusterView
from disque_operator.observed import Broker, Observed, Peer, Pod
from disque_operator.plan import plan
from disque_operator.spec import Persistence, Spec, Storage
from support.kubeworld.scenario import Scenario, a_spec, edited

FRESH = "fresh-password"


@cache
def _settled(replicas: int, ephemeral: bool) -> tuple[Spec, Observed, float]:
    spec = a_spec(replicas=replicas)
    if ephemeral:
        spec = edited(spec, storage=Storage(ephemeral=True), persistence=Persistence(appendonly=False))
    scenario = Scenario(spec, load=False)
    scenario.settle()
    return scenario.world.spec, scenario.world.observe(), scenario.world.now_s


def at_rest(replicas: int = 3, *, ephemeral: bool = False) -> ClusterView:
    """Return a healthy cluster."""
    return ClusterView(*_settled(replicas, ephemeral))


def changed(view: ClusterView, **fields: Any) -> ClusterView:
    """Return the view with other fields of the spec."""
    return ClusterView(edited(view.spec, **fields), view.observed, view.now_s)


def seen(view: ClusterView, **fields: Any) -> ClusterView:
    """Return the view with other observations."""
    return ClusterView(view.spec, replace(view.observed, **fields), view.now_s)


def pod(view: ClusterView, ordinal: int, **fields: Any) -> ClusterView:
    """Return the view with a changed pod."""
    pods = tuple(replace(one, **fields) if one.ordinal == ordinal else one for one in view.observed.pods)
    return seen(view, pods=pods)


def broker(view: ClusterView, ordinal: int, **fields: Any) -> ClusterView:
    """Return the view with a changed broker."""
    name = name_of(view, ordinal)
    return seen(view, brokers={**view.observed.brokers, name: replace(view.observed.brokers[name], **fields)})


def peers(view: ClusterView, of: str, **fields: Any) -> ClusterView:
    """Return the view with a changed entry of one member on all brokers."""
    brokers = {
        name: replace(one, peers=tuple(replace(peer, **fields) if peer.node_id == of else peer for peer in one.peers))
        for name, one in view.observed.brokers.items()
    }
    return seen(view, brokers=brokers)


def unknown_member(view: ClusterView, **fields: Any) -> ClusterView:
    """Return the view with a member that all brokers list and that does not exist."""
    peer = Peer("id-unknown", "10.1.2.3", False, True, False, 100.0)
    brokers = {
        name: replace(one, peers=(*one.peers, replace(peer, **fields))) for name, one in view.observed.brokers.items()
    }
    return seen(view, brokers=brokers)


def unreachable(view: ClusterView, ordinal: int, why: str = "connection refused", **fields: Any) -> ClusterView:
    """Return the view with a broker that does not answer."""
    name = name_of(view, ordinal)
    brokers = {other: one for other, one in view.observed.brokers.items() if other != name}
    return pod(seen(view, brokers=brokers, unreachable={**view.observed.unreachable, name: why}), ordinal, **fields)


def gone(view: ClusterView, ordinal: int) -> ClusterView:
    """Return the view without a pod, and without connections to it."""
    name = name_of(view, ordinal)
    node_id = view.observed.brokers[name].node_id
    brokers = {other: one for other, one in view.observed.brokers.items() if other != name}
    pods = tuple(one for one in view.observed.pods if one.name != name)
    return peers(seen(view, brokers=brokers, pods=pods), node_id, connected=False)


def revision(view: ClusterView, name: str = "new") -> ClusterView:
    """Return the view with a changed template, before any pod is replaced."""
    return stateful_set(view, revision=name)


def volumes(view: ClusterView, ordinal: int, **fields: Any) -> ClusterView:
    """Return the view with a changed claim."""
    found = tuple(replace(one, **fields) if one.ordinal == ordinal else one for one in view.observed.volumes)
    return seen(view, volumes=found)


def stateful_set(view: ClusterView, **fields: Any) -> ClusterView:
    """Return the view with a changed StatefulSet."""
    assert view.stateful_set is not None
    found = replace(view.stateful_set, **fields)
    key = ("StatefulSet", view.spec.name)
    live = copy.deepcopy(view.observed.children[key])
    live["spec"]["replicas"] = found.replicas
    return seen(view, stateful_set=found, children={**view.observed.children, key: live})


def status(view: ClusterView, **fields: Any) -> ClusterView:
    """Return the view with a changed previous status."""
    return seen(view, status={**view.observed.status, **fields})


def name_of(view: ClusterView, ordinal: int) -> str:
    """Return the name of a pod."""
    return f"{view.spec.name}-{ordinal}"


def broker_of(view: ClusterView, ordinal: int) -> Broker:
    """Return a broker."""
    return view.observed.brokers[name_of(view, ordinal)]


def pod_of(view: ClusterView, ordinal: int) -> Pod:
    """Return a pod."""
    return next(one for one in view.observed.pods if one.ordinal == ordinal)


def planned(view: ClusterView) -> Plan:
    """Return the plan."""
    return plan(view.spec, view.observed, view.now_s, FRESH)


def short(action: Action) -> str:
    """Return an action in short form: `mail-0: CLUSTER LEAVING yes`, `apply StatefulSet 2`, `replace mail-2`."""
    if isinstance(action, Command):
        return f"{action.pod}: {' '.join(action.words)}"
    if isinstance(action, DeletePod):
        return f"replace {action.name}"
    if isinstance(action, DeleteChild):
        return f"delete {action.kind} {action.name}"
    if isinstance(action, Issue):
        return f"issue {action.manifest['metadata']['name']}"
    if isinstance(action, WriteStatus):
        return f"status {action.resource['kind']} {action.resource['metadata']['name']}"
    if isinstance(action, Create):
        return f"create {_what(action)}"
    return f"apply {_what(action)}"


def _what(action: Apply | Create) -> str:
    manifest = action.manifest
    if manifest["kind"] == "StatefulSet":
        return f"StatefulSet {manifest['spec']['replicas']}"
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def decided(view: ClusterView) -> list[str]:
    """Return all actions of the plan in short form."""
    return [short(action) for action in planned(view).actions]


def condition(status: Json, kind: str) -> tuple[str, str]:
    """Return status and reason of a condition."""
    entry = next(entry for entry in status["conditions"] if entry["type"] == kind)
    return entry["status"], entry["reason"]


def reported(view: ClusterView, kind: str) -> tuple[str, str]:
    """Return status and reason of a condition in the next status."""
    return condition(planned(view).status, kind)
