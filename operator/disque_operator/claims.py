"""Volume claims: marked when their node has handed all over, deleted when their pod is gone, expanded, owned.

A claim outlives its pod, so what is known about the jobs on it has to stand on it: `names.DRAINED` is written before
the StatefulSet is lowered, and taken off before its pod serves again. Cases of a claim whose ordinal the StatefulSet

| | counts | does not count any more |
|---|---|---|
| marked | the mark is taken off, but at the end of a drain | deleted with `whenScaled: Delete`, when the pod is gone |
| not marked, bound | | kept: it may hold jobs |
| not bound | | deleted with `whenScaled: Delete`: there is no volume yet |

With `whenDeleted: Delete` the resource owns its claims. They grow with `storage.size` and never shrink.
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
    """What claims need while there are to be so many pods. The one `drained`, if any, is at the end of its drain."""
    return Decision(tuple(_changes(view, max(view.reserved, replicas), drained)))


def _is_deserted(view: ClusterView, volume: Volume, reserved: int) -> bool:
    """Whether nobody misses the claim: its pod is not to come back, and it holds no jobs."""
    gone = volume.ordinal >= reserved and volume.ordinal not in view.by_ordinal
    return gone and (bool(volume.drained) or not volume.bound)


def _changes(view: ClusterView, reserved: int, drained: int | None) -> Iterator[Apply | DeleteChild]:
    if view.spec.storage.ephemeral or view.stateful_set is None:
        return
    for volume in view.observed.volumes:
        if volume.terminating:
            continue
        if _is_deserted(view, volume, reserved):
            if view.spec.storage.retention.when_scaled == "Delete":
                yield DeleteChild("PersistentVolumeClaim", volume.name, volume.uid, "all its jobs were handed over")
            continue
        mark = volume.drained if volume.ordinal >= reserved or volume.ordinal == drained else ""
        owned = view.spec.storage.retention.when_deleted == "Delete"
        if mark != volume.drained or owned != volume.owned:
            why = "its node serves again" if mark != volume.drained else "as spec.storage says"
            yield Apply(_manifest(view, volume, mark, volume.size), why)


def expand(view: ClusterView) -> Decision:
    """Claims that are to be larger. After all else: a StorageClass that can not do that refuses."""
    if view.spec.storage.ephemeral:
        return Decision()
    return Decision(
        tuple(
            Apply(_manifest(view, volume, volume.drained, view.spec.storage.size), "spec.storage.size is larger")
            for volume in view.observed.volumes
            if volume.bound and not volume.terminating and _is_less(volume.size, view.spec.storage.size)
        )
    )


def marking(view: ClusterView, ordinal: int, node_id: str) -> tuple[Apply, ...]:
    """What has to be done before a drained pod may go; nothing when it is."""
    volume = view.volumes.get(ordinal)
    if volume is None or volume.drained == node_id:
        return ()
    return (Apply(_manifest(view, volume, node_id, volume.size), "its node has handed all its jobs over"),)


def _manifest(view: ClusterView, volume: Volume, drained: str, size: str) -> Json:
    """All that is ours of a claim. The size is always: what was applied once and then is not would be taken back."""
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
