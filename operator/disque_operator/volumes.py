"""Reads volume claims: their sizes, the state of expansions, and whether their StorageClasses can expand volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json, is_less
from disque_operator.kube import FORBIDDEN, Kube, KubeError
from disque_operator.observed import Volume
from disque_operator.spec import Spec

_RESIZE_CONDITIONS: Final = ("ControllerResizeError", "NodeResizeError", "FileSystemResizePending", "Resizing")
"""Conditions of a claim about its expansion, the most important first."""


def of_cluster(spec: Spec, found: Mapping[tuple[str, str], Json]) -> tuple[Volume, ...]:
    """Return the volume claims of a cluster, by ordinal."""
    prefix = f"{names.DATA}-"
    volumes = [
        Volume(
            name=name,
            ordinal=names.ordinal(name),
            uid=item["metadata"]["uid"],
            size=item["spec"]["resources"]["requests"]["storage"],
            bound=(item.get("status") or {}).get("phase") == "Bound",
            terminating="deletionTimestamp" in item["metadata"],
            drained=(item["metadata"].get("annotations") or {}).get(names.DRAINED, ""),
            owned=any(owner.get("uid") == spec.uid for owner in item["metadata"].get("ownerReferences") or ()),
            capacity=((item.get("status") or {}).get("capacity") or {}).get("storage", ""),
            class_name=item["spec"].get("storageClassName"),
            **_resize(item.get("status") or {}),
        )
        for (kind, name), item in found.items()
        if kind == "PersistentVolumeClaim"
        and name.startswith(prefix)
        and names.is_pod(spec.name, name.removeprefix(prefix))
    ]
    return tuple(sorted(volumes, key=lambda volume: volume.ordinal))


def _resize(status: Json) -> dict[str, str]:
    """Return the state of an expansion: the one that the resizer recorded, or that of a condition."""
    conditions = {entry["type"]: entry for entry in status.get("conditions") or () if entry.get("status") == "True"}
    state = (status.get("allocatedResourceStatuses") or {}).get("storage", "")
    about = next((kind for kind in _RESIZE_CONDITIONS if kind in conditions), "")
    return {"resize": state or about, "resize_text": (conditions.get(about) or {}).get("message", "")}


async def read_expandable(kube: Kube, spec: Spec, found: Mapping[tuple[str, str], Json]) -> Mapping[str, bool]:
    """Return whether volumes can be expanded, by StorageClass. Classes are read only if claims are too small.

    Nothing depends on the right to read them: without it, the API server says whether it accepts the larger size.
    """
    small = {
        volume.class_name
        for volume in of_cluster(spec, found)
        if volume.class_name and is_less(volume.size, spec.storage.size)
    }
    known: dict[str, bool] = {}
    for name in sorted(small):
        try:
            live = await kube.get("StorageClass", None, name)
        except KubeError as error:
            if error.status != FORBIDDEN:
                raise
            continue
        known[name] = bool((live or {}).get("allowVolumeExpansion"))
    return known
