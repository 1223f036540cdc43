"""Children: the objects that the cluster is made of, put right when they are not what the spec asks for.

What `resources.desired` says is compared with what is there, and applied only where it differs, so that a cluster that
is well is never written to. A manifest of an object that was there carries its `resourceVersion`: if it changed since
it was looked at, nothing is done before it was looked at again. Objects of these names that are somebody else's are
left alone and told of.
"""

from __future__ import annotations

from collections.abc import Iterator

from disque_operator import names
from disque_operator.actions import Apply, DeleteChild
from disque_operator.apivalues import Json
from disque_operator.decisions import Decision, Note, problem
from disque_operator.members import ClusterView
from disque_operator.resources import Wanted, desired, differs, surplus
from disque_operator.spec import Spec


def decide(view: ClusterView, wanted: Wanted) -> Decision:
    """What has to be applied or deleted."""
    manifests = desired(view.spec, wanted)
    children = view.observed.children
    actions: list[Apply | DeleteChild] = []
    notes: list[Note] = []
    for manifest in manifests:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        live = children.get((kind, name))
        if live is not None and not _is_ours(live, view.spec):
            notes.append(_taken(kind, name, view))
        elif difference := differs(manifest, live):
            actions.append(Apply(_conditional(manifest, live), _why(live, difference)))
    actions.extend(_unwanted(view, manifests))
    return Decision(tuple(actions), tuple(notes))


def _is_ours(live: Json, spec: Spec) -> bool:
    """Whether an object belongs to the resource, or to nobody and has our label."""
    metadata = live["metadata"]
    owners = [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
    if owners:
        return any(owner.get("uid") == spec.uid for owner in owners)
    return bool((metadata.get("labels") or {}).get(names.CLUSTER_LABEL) == spec.name)


def _taken(kind: str, name: str, view: ClusterView) -> Note:
    return problem(
        "NameTaken",
        f"there is a {kind} {name} in the namespace {view.spec.namespace} that is not of this cluster: delete or "
        "rename it, or give the DisqueCluster another name. One of a former cluster of this name goes by itself",
    )


def _conditional(manifest: Json, live: Json | None) -> Json:
    version = live["metadata"].get("resourceVersion") if live is not None else None
    if version is None:
        return manifest
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": version}}


def _why(live: Json | None, difference: str) -> str:
    return "it is missing" if live is None else f"{difference} is not as the spec asks"


def _unwanted(view: ClusterView, manifests: tuple[Json, ...]) -> Iterator[DeleteChild]:
    for live in surplus(manifests, view.observed.children):
        metadata = live["metadata"]
        yield DeleteChild(live["kind"], metadata["name"], metadata["uid"], "the spec does not ask for it any more")
