"""Volume claims: marks them after a drain, deletes them after their pod, expands them, sets their owner.

A claim outlives its pod, so it must show itself whether it holds jobs: the annotation `names.DRAINED` is set before the
StatefulSet is scaled down, and removed before a pod uses the claim again.

| the claim | its ordinal is below the replicas | its ordinal is not below the replicas |
|---|---|---|
| is marked | the mark is removed, except at the end of a drain | deleted with `whenScaled: Delete` after its pod |
| is bound, not marked | nothing | kept, because it may hold jobs |
| is not bound | nothing | deleted with `whenScaled: Delete`, because there is no volume yet |

With `whenDeleted: Delete` the resource owns its claims.

| `storage.size` is | the StorageClass | decision |
|---|---|---|
| more than the request of the claim | can expand volumes, or cannot be read | expand the claim |
| the same | cannot expand volumes | report it; the user can set the former size again |
| less than the request, more than the volume has | any | lower the request, so that a failed expansion can end |
| less than the volume has | any | report it: volumes do not shrink |

Kubernetes expands volumes in steps, some of which wait for the pod or fail: the notes say which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from disque_operator import names
from disque_operator.actions import Apply, DeleteChild
from disque_operator.apivalues import Json, is_less
from disque_operator.decisions import NOTHING, Decision, Note, joined, problem, progress
from disque_operator.members import ClusterView
from disque_operator.observed import Volume

_STATES: Final[Mapping[str, str]] = {
    "ControllerResizeInfeasible": "ResizeFailed",
    "ControllerResizeFailed": "ResizeFailed",
    "ControllerResizeError": "ResizeFailed",
    "NodeResizeInfeasible": "ResizeFailed",
    "NodeResizeFailed": "ResizeFailed",
    "NodeResizeError": "ResizeFailed",
    "NodeResizePending": "FileSystemResizePending",
    "FileSystemResizePending": "FileSystemResizePending",
}
"""Reasons by the state of an expansion; others are in progress."""


def decide(view: ClusterView, replicas: int, drained: int | None) -> Decision:
    """Decide what to change.

    Args:
        view: The cluster.
        replicas: The number of replicas from this round on.
        drained: The ordinal of a pod that was just drained, whose claim stays marked; None if there is none.
    """
    return Decision(tuple(_changes(view, max(view.reserved, replicas), drained)))


def _is_deletable(view: ClusterView, volume: Volume, reserved: int) -> bool:
    """Return whether the claim can be deleted: its pod will not return, and it holds no jobs."""
    gone = volume.ordinal >= reserved and volume.ordinal not in view.by_ordinal
    return gone and (bool(volume.drained) or not volume.bound)


def _changes(view: ClusterView, reserved: int, drained: int | None) -> Iterator[Apply | DeleteChild]:
    if view.spec.storage.ephemeral or view.stateful_set is None:
        return
    for volume in view.observed.volumes:
        if volume.terminating:
            continue
        if _is_deletable(view, volume, reserved):
            if view.spec.storage.retention.when_scaled == "Delete":
                yield DeleteChild("PersistentVolumeClaim", volume.name, volume.uid, "its jobs were transferred")
            continue
        mark = volume.drained if volume.ordinal >= reserved or volume.ordinal == drained else ""
        owned = view.spec.storage.retention.when_deleted == "Delete"
        if mark != volume.drained or owned != volume.owned:
            why = "a pod uses it again" if mark != volume.drained else "spec.storage.retention has changed"
            yield Apply(_manifest(view, volume, mark, volume.size), why)


def resize(view: ClusterView) -> Decision:
    """Give claims the size of the spec, by the second table."""
    if view.spec.storage.ephemeral:
        return NOTHING
    volumes = [volume for volume in view.observed.volumes if volume.bound and not volume.terminating]
    decisions = (_resize(view, volume) for volume in volumes)
    return joined((*decisions, Decision(notes=tuple(_expansions(volumes)))))


def _resize(view: ClusterView, volume: Volume) -> Decision:
    wanted, class_name = view.spec.storage.size, volume.class_name
    if is_less(volume.size, wanted):
        if class_name == "" or view.observed.expandable.get(class_name or "", True) is False:
            return Decision(notes=(_not_expandable(volume),))
        return Decision((Apply(_manifest(view, volume, volume.drained, wanted), "spec.storage.size has grown"),))
    if not is_less(wanted, volume.size):
        return NOTHING
    if is_less(volume.capacity, wanted):
        return Decision((Apply(_manifest(view, volume, volume.drained, wanted), "spec.storage.size is smaller"),))
    return Decision(notes=(_not_shrinkable(volume),))


def _not_expandable(volume: Volume) -> Note:
    name = f"StorageClass {volume.class_name}" if volume.class_name else "a volume without a StorageClass"
    return problem(
        "VolumeNotExpandable",
        f"{name} cannot expand volumes: set spec.storage.size back to {volume.size}, or set allowVolumeExpansion: true "
        "in the StorageClass if its driver supports it",
    )


def _not_shrinkable(volume: Volume) -> Note:
    return problem(
        "VolumeNotShrinkable",
        f"{volume.name} has {volume.size} already, and volumes cannot shrink: set spec.storage.size to {volume.size}",
    )


def _expansions(volumes: Sequence[Volume]) -> Iterator[Note]:
    """Report expansions that Kubernetes has not completed, one note for each state."""
    growing = [volume for volume in volumes if is_less(volume.capacity, volume.size) or volume.resize]
    for reason in sorted({_STATES.get(volume.resize, "Resizing") for volume in growing}):
        several = [volume for volume in growing if _STATES.get(volume.resize, "Resizing") == reason]
        claims = ", ".join(volume.name for volume in several)
        if reason == "ResizeFailed":
            why = next((f": {volume.resize_text}" for volume in several if volume.resize_text), "")
            yield problem(
                "ResizeFailed",
                f"{claims} cannot be expanded ({several[0].resize}{why}): see kubectl describe pvc {several[0].name}. "
                f"You can set spec.storage.size to a smaller size above {several[0].capacity}",
            )
        elif reason == "FileSystemResizePending":
            text = (
                f"{claims} is larger, and its file system is not yet: some drivers need a restart of the pod for that"
            )
            yield progress("FileSystemResizePending", text, "Applying")
        else:
            yield progress("Resizing", f"{claims} is being expanded", "Applying")


def marking(view: ClusterView, ordinal: int, node_id: str) -> tuple[Apply, ...]:
    """Return the action that marks a claim before its drained pod is removed; nothing if it is marked."""
    volume = view.volumes.get(ordinal)
    if volume is None or volume.drained == node_id:
        return ()
    return (Apply(_manifest(view, volume, node_id, volume.size), "its broker has transferred all jobs"),)


def _manifest(view: ClusterView, volume: Volume, drained: str, size: str) -> Json:
    """Return all fields that the operator owns. Without the size, apply would revert it."""
    spec = view.spec
    metadata: Json = {"name": volume.name, "namespace": spec.namespace, "uid": volume.uid}
    if drained:
        metadata["annotations"] = {names.DRAINED: drained}
    if spec.storage.retention.when_deleted == "Delete":
        metadata["ownerReferences"] = [
            {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": spec.name, "uid": spec.uid}
        ]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {"resources": {"requests": {"storage": size}}},
    }
