"""A model of storage: the API server's checks of the sizes of claims, and the resizer that expands their volumes."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json, is_less
from disque_operator.brokers import CommandFailedError
from disque_operator.observed import Volume
from support.kubeworld.objects import Api

STORAGE_CLASS: Final = "fast"
RESIZE_S: Final = 5.0
CLAIM: Final = "PersistentVolumeClaim"


class ShrinkError(AssertionError):
    """A volume would become smaller."""


class VolumeStore:
    """The volumes of the claims, all of one StorageClass."""

    def __init__(self, api: Api) -> None:
        self.expands = True
        """Whether the StorageClass can expand volumes."""
        self.reads_classes = True
        """Whether the operator may read StorageClasses."""
        self.largest = ""
        """The largest size of a volume that the storage has; empty if there is no limit."""
        self._api = api
        self._due_s: dict[str, float] = {}

    @property
    def expandable(self) -> dict[str, bool]:
        """Return what the operator reads of the StorageClass."""
        return {STORAGE_CLASS: self.expands} if self.reads_classes else {}

    def volumes(self, owner: str, deleting: Container[str]) -> tuple[Volume, ...]:
        """Return the claims, by ordinal. `owner` is the UID of the resource, `deleting` the claims being deleted."""
        found = (
            Volume(
                name,
                names.ordinal(name),
                live["metadata"]["uid"],
                live["spec"]["resources"]["requests"]["storage"],
                (live.get("status") or {}).get("phase") == "Bound",
                name in deleting,
                (live["metadata"].get("annotations") or {}).get(names.DRAINED, ""),
                any(one["uid"] == owner for one in live["metadata"].get("ownerReferences") or ()),
                live.get("status", {}).get("capacity", {}).get("storage", ""),
                STORAGE_CLASS,
                live.get("status", {}).get("allocatedResourceStatuses", {}).get("storage", ""),
            )
            for (kind, name), live in self._api.objects.items()
            if kind == CLAIM
        )
        return tuple(sorted(found, key=lambda volume: volume.ordinal))

    def apply(self, manifest: Json, now_s: float) -> None:
        """Check the size of a claim as the API server does, before it is applied, and expand its volume later."""
        name = manifest["metadata"]["name"]
        live = self._api.get(manifest["kind"], name)
        if manifest["kind"] != CLAIM or live is None:
            return
        wanted, there = (one["spec"]["resources"]["requests"]["storage"] for one in (manifest, live))
        if is_less(there, wanted) and not self.expands:
            raise CommandFailedError(f"403: the StorageClass {STORAGE_CLASS} does not support resize")
        if is_less(wanted, there) and not is_less(live["status"]["capacity"]["storage"], wanted):
            raise ShrinkError(f"{name} would shrink to {wanted}")
        self._due_s.setdefault(name, now_s + RESIZE_S)

    def step(self, now_s: float) -> bool:
        """Run the resizer; return whether it changed a claim."""
        due = [name for name, due_s in self._due_s.items() if now_s >= due_s]
        changed = False
        for name in due:
            del self._due_s[name]
            live = self._api.get(CLAIM, name)
            size = live["spec"]["resources"]["requests"]["storage"] if live is not None else ""
            if live is None or not is_less(live["status"].get("capacity", {}).get("storage"), size):
                continue
            if self.largest and is_less(self.largest, size):
                live["status"]["allocatedResourceStatuses"] = {"storage": "ControllerResizeInfeasible"}
            else:
                live["status"] |= {"allocatedResourceStatuses": {}, "capacity": {"storage": size}}
            self._api.touch(live)
            changed = True
        return changed
