"""Children: creates the objects of a cluster, and restores them when they differ from the spec.

A manifest of `resources.desired` is applied only where the live object differs, so nothing is written to a healthy
cluster. The manifest of an existing object carries its `resourceVersion`: if the object has changed since it was
observed, it is not written in this round. Objects with these names that belong to somebody else are reported, not
changed.

An object of which another program changes a field back after each apply is reported, and applied with backoff.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from disque_operator import names
from disque_operator.actions import Apply, DeleteChild, Issue, Request
from disque_operator.apivalues import Json
from disque_operator.decisions import NOTHING, Decision, Note, joined, problem
from disque_operator.members import ClusterView
from disque_operator.observed import Revert
from disque_operator.resources import (
    Certificates,
    Wanted,
    bus_secret,
    certificate_objects,
    desired,
    differs,
    is_ours,
    surplus,
)


def decide(view: ClusterView, wanted: Wanted) -> Decision:
    """Decide which objects to apply or delete."""
    manifests = desired(view.spec, wanted)
    gone = Decision(tuple(_no_longer_desired(view, manifests)))
    return joined((_applied(view, manifests, wanted.certificates.requests), gone))


def certificates(view: ClusterView, wanted: Certificates) -> Decision:
    """Decide which objects with certificates to apply: no other object is of use before."""
    return _applied(view, certificate_objects(view.spec, wanted), wanted.requests)


def bus(view: ClusterView, files: Mapping[str, str], request: Request | None) -> Decision:
    """Decide about the Secret with the cluster secrets: templates name them when they are stored."""
    if request is None:
        return NOTHING
    return _applied(view, (bus_secret(view.spec, files),), {names.bus_secret(view.spec.name): request})


def services(view: ClusterView, manifests: Iterable[Json]) -> Decision:
    """Decide which services of members to apply."""
    return _applied(view, manifests, {})


def optional(view: ClusterView, kind: str, name: str, manifest: Json | None) -> Decision:
    """Decide about one object that is applied on its own; without a manifest it is deleted if it is ours."""
    if manifest is not None:
        return _applied(view, (manifest,), {})
    live = view.observed.children.get((kind, name))
    if live is None or not is_ours(live, view.spec):
        return NOTHING
    return Decision((DeleteChild(kind, name, live["metadata"]["uid"], "it is no longer desired"),))


def _applied(view: ClusterView, manifests: Iterable[Json], requests: Mapping[str, Request]) -> Decision:
    children = view.observed.children
    actions: list[Apply | Issue] = []
    notes: list[Note] = []
    for manifest in manifests:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        live = children.get((kind, name))
        if live is not None and not is_ours(live, view.spec):
            notes.append(_name_taken(kind, name, view))
        elif kind == "Secret" and name in requests:
            actions.append(Issue(_conditional(manifest, live), requests[name], "it is due"))
        elif live is None:
            actions.append(Apply(manifest, "it does not exist"))
        else:
            difference, revert = differs(manifest, live), _revert(manifest, view)
            waits = revert is not None and revert.waits
            if revert is not None and (difference or waits):  # it may be changed back a moment later
                notes.append(_reverted(kind, name, revert.field))
            if difference and not waits:
                why = f"{difference} differs from the spec"
                actions.append(Apply(_conditional(manifest, live), why, difference))
    return Decision(tuple(actions), tuple(notes))


def _name_taken(kind: str, name: str, view: ClusterView) -> Note:
    return problem(
        "NameTaken",
        f"{kind} {name} in namespace {view.spec.namespace} does not belong to this cluster: delete it, or use another "
        "name for the DisqueCluster. If it belongs to a deleted cluster of this name, Kubernetes will delete it soon",
    )


def _revert(manifest: Json, view: ClusterView) -> Revert | None:
    """Return which field of this manifest is changed back; a changed manifest is another one."""
    revert = view.observed.reverts.get((manifest["kind"], manifest["metadata"]["name"]))
    return revert if revert and revert.digest == manifest["metadata"]["annotations"][names.APPLIED] else None


def _reverted(kind: str, name: str, field: str) -> Note:
    return problem(
        "FieldReverted",
        f"{field} of {kind} {name} is changed back whenever the operator applies it, by a mutating webhook or another "
        f"controller: exclude objects with the label {names.CLUSTER_LABEL} there, or set the field to the same value "
        "in the spec of the DisqueCluster. Until then it is applied every few minutes",
    )


def _conditional(manifest: Json, live: Json | None) -> Json:
    version = live["metadata"].get("resourceVersion") if live is not None else None
    if version is None:
        return manifest
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": version}}


def _no_longer_desired(view: ClusterView, manifests: tuple[Json, ...]) -> Iterator[DeleteChild]:
    for live in surplus(manifests, view.observed.children):
        metadata = live["metadata"]
        yield DeleteChild(live["kind"], metadata["name"], metadata["uid"], "it is no longer desired")
