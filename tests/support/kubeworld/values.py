"""A cluster at rest as values, and small changes of it, for tables of what `plan` answers to what it sees."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from typing import Any

from disque_operator.actions import Action, Apply, Command, DeleteChild, DeletePod
from disque_operator.apivalues import Json
from disque_operator.members import View
from disque_operator.observed import Node, Observed, Peer, Pod
from disque_operator.plan import plan
from disque_operator.planned import Plan
from disque_operator.spec import Persistence, Spec, Storage
from support.kubeworld.story import Story, a_spec, edited

FRESH = "fresh-password"


@cache
def _settled(replicas: int, ephemeral: bool) -> tuple[Spec, Observed, float]:
    spec = a_spec(replicas=replicas)
    if ephemeral:
        spec = edited(spec, storage=Storage(ephemeral=True), persistence=Persistence(appendonly=False))
    story = Story(spec, load=False)
    story.settle()
    return story.world.spec, story.world.observe(), story.world.now_s


def at_rest(replicas: int = 3, *, ephemeral: bool = False) -> View:
    """A cluster on which nothing is to be done."""
    return View(*_settled(replicas, ephemeral))


def changed(view: View, **fields: Any) -> View:
    """The same with other fields of the spec."""
    return View(edited(view.spec, **fields), view.observed, view.now_s)


def seen(view: View, **fields: Any) -> View:
    """The same with something else observed."""
    return View(view.spec, replace(view.observed, **fields), view.now_s)


def pod(view: View, ordinal: int, **fields: Any) -> View:
    """The same with another pod of this ordinal."""
    pods = tuple(replace(one, **fields) if one.ordinal == ordinal else one for one in view.observed.pods)
    return seen(view, pods=pods)


def node(view: View, ordinal: int, **fields: Any) -> View:
    """The same with a broker that says something else."""
    name = name_of(view, ordinal)
    return seen(view, nodes={**view.observed.nodes, name: replace(view.observed.nodes[name], **fields)})


def peers(view: View, of: str, **fields: Any) -> View:
    """The same with something else said of one member, by all others."""
    nodes = {
        name: replace(one, peers=tuple(replace(peer, **fields) if peer.node_id == of else peer for peer in one.peers))
        for name, one in view.observed.nodes.items()
    }
    return seen(view, nodes=nodes)


def stranger(view: View, **fields: Any) -> View:
    """The same with a member that all list and nobody is."""
    peer = Peer("id-stranger", "10.1.2.3", False, True, False, 100.0)
    nodes = {
        name: replace(one, peers=(*one.peers, replace(peer, **fields))) for name, one in view.observed.nodes.items()
    }
    return seen(view, nodes=nodes)


def silent(view: View, ordinal: int, why: str = "connection refused", **fields: Any) -> View:
    """The same with a pod whose broker does not answer."""
    name = name_of(view, ordinal)
    nodes = {other: one for other, one in view.observed.nodes.items() if other != name}
    return pod(seen(view, nodes=nodes, silent={**view.observed.silent, name: why}), ordinal, **fields)


def gone(view: View, ordinal: int) -> View:
    """The same without a pod; the others have no connection to it."""
    name = name_of(view, ordinal)
    node_id = view.observed.nodes[name].node_id
    nodes = {other: one for other, one in view.observed.nodes.items() if other != name}
    pods = tuple(one for one in view.observed.pods if one.name != name)
    return peers(seen(view, nodes=nodes, pods=pods), node_id, connected=False)


def revision(view: View, name: str = "new") -> View:
    """The template has changed, and no pod was replaced yet."""
    return stateful_set(view, revision=name)


def volumes(view: View, ordinal: int, **fields: Any) -> View:
    """The same with another claim."""
    found = tuple(replace(one, **fields) if one.ordinal == ordinal else one for one in view.observed.volumes)
    return seen(view, volumes=found)


def stateful_set(view: View, **fields: Any) -> View:
    """The same with another StatefulSet."""
    assert view.stateful_set is not None
    found = replace(view.stateful_set, **fields)
    key = ("StatefulSet", view.spec.name)
    live = copy.deepcopy(view.observed.children[key])
    live["spec"]["replicas"] = found.replicas
    return seen(view, stateful_set=found, children={**view.observed.children, key: live})


def status(view: View, **fields: Any) -> View:
    """The same with another status of before."""
    return seen(view, status={**view.observed.status, **fields})


def name_of(view: View, ordinal: int) -> str:
    """A pod's name."""
    return f"{view.spec.name}-{ordinal}"


def node_of(view: View, ordinal: int) -> Node:
    """A broker."""
    return view.observed.nodes[name_of(view, ordinal)]


def pod_of(view: View, ordinal: int) -> Pod:
    """A pod."""
    return next(one for one in view.observed.pods if one.ordinal == ordinal)


def planned(view: View) -> Plan:
    """What comes next."""
    return plan(view.spec, view.observed, view.now_s, FRESH)


def short(action: Action) -> str:
    """An action in a few words: `mail-0: CLUSTER LEAVING yes`, `apply StatefulSet 2`, `replace mail-2`."""
    if isinstance(action, Command):
        return f"{action.pod}: {' '.join(action.words)}"
    if isinstance(action, DeletePod):
        return f"replace {action.name}"
    if isinstance(action, DeleteChild):
        return f"delete {action.kind} {action.name}"
    return f"apply {_what(action)}"


def _what(action: Apply) -> str:
    manifest = action.manifest
    if manifest["kind"] == "StatefulSet":
        return f"StatefulSet {manifest['spec']['replicas']}"
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def done(view: View) -> list[str]:
    """All actions of a round, in a few words."""
    return [short(action) for action in planned(view).actions]


def condition(status: Json, kind: str) -> tuple[str, str]:
    """Status and reason of a condition."""
    entry = next(entry for entry in status["conditions"] if entry["type"] == kind)
    return entry["status"], entry["reason"]


def told(view: View, kind: str) -> tuple[str, str]:
    """Status and reason of a condition in the next status."""
    return condition(planned(view).status, kind)
