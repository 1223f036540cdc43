"""Volume claims: marks them after a drain, deletes them after their pod, expands them, sets their owner.

A claim outlives its pod, so it must show itself whether it holds jobs: the annotation `names.DRAINED` is set before the
StatefulSet is scaled down, and removed before a pod uses the claim again.

| the claim | its ordinal is below the replicas | its ordinal is not below the replicas |
|---|---|---|
| is marked | the mark is removed, except at the end of a drain | deleted with `whenScaled: Delete` after its pod |
| is bound, not marked | nothing | kept, because it may hold jobs |
| is not bound | nothing | deleted with `whenScaled: Delete`, because there is no volume yet |

With `whenDeleted: Delete` the resource owns its claims. Claims grow with `storage.size` and never shrink.
"""

from __future__ import annotations

from collections.abc import Iterator

from disque_operator import names
from disque_operator.actions import Apply, DeleteChild
from disque_operator.apivalues import Json, amount
from disque_operator.decisions import Decision
from disque_operator.members import ClusterView
from disque_operator.observed import Volume


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


def expand(view: ClusterView) -> Decision:
    """Expand claims. This comes last, because the request fails if the StorageClass cannot expand volumes."""
    if view.spec.storage.ephemeral:
        return Decision()
    return Decision(
        tuple(
            Apply(_manifest(view, volume, volume.drained, view.spec.storage.size), "spec.storage.size has grown")
            for volume in view.observed.volumes
            if volume.bound and not volume.terminating and _is_less(volume.size, view.spec.storage.size)
        )
    )


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


def _is_less(there: str, wanted: str) -> bool:
    one, other = amount(there), amount(wanted)
    return one is not None and other is not None and one < other
