"""A model of the API server: objects by kind and name, server-side apply with one manager, versions, UIDs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from disque_operator.apivalues import Json

_SPEC_GENERATION = ("StatefulSet",)


class ConflictError(Exception):
    """The object is not the one that was observed."""


class InvariantError(AssertionError):
    """An invariant is violated."""


class Api:
    """The stored objects."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Json] = {}
        self.webhook: Callable[[Json], None] = lambda _live: None
        """Changes each object that is applied, as a mutating webhook does."""
        self._applied: dict[tuple[str, str], Json] = {}
        self._serial = 0

    def serial(self) -> int:
        """Return a new number."""
        self._serial += 1
        return self._serial

    def get(self, kind: str, name: str) -> Json | None:
        """Return an object; None if it does not exist."""
        return self.objects.get((kind, name))

    def put(self, manifest: Json) -> Json:
        """Create an object on behalf of a controller or a user."""
        live = copy.deepcopy(manifest)
        live["metadata"].setdefault("uid", f"uid-{self.serial()}")
        live["metadata"]["generation"] = 1
        self.objects[live["kind"], live["metadata"]["name"]] = live
        self.touch(live)
        return live

    def create(self, manifest: Json) -> None:
        """Create an object for the operator, which must not exist."""
        if (manifest["kind"], manifest["metadata"]["name"]) in self.objects:
            raise ConflictError(f"{manifest['metadata']['name']} exists")
        self.put(manifest)

    def touch(self, live: Json) -> None:
        """Give an object a new version."""
        live["metadata"]["resourceVersion"] = str(self.serial())

    def apply(self, manifest: Json) -> Json:
        """Apply a manifest of the operator: set its fields, and remove those that only the previous manifest had."""
        key = (manifest["kind"], manifest["metadata"]["name"])
        said = copy.deepcopy(manifest)
        version, uid = said["metadata"].pop("resourceVersion", None), said["metadata"].pop("uid", None)
        live = self.objects.get(key)
        if live is None:
            if version is not None or uid is not None:
                raise ConflictError(f"{key} is gone")
            live = self.put(said)
        else:
            if version not in {None, live["metadata"]["resourceVersion"]} or uid not in {None, live["metadata"]["uid"]}:
                raise ConflictError(f"{key} has changed")
            before = copy.deepcopy(live)
            merged = merge(_without(live, self._applied.get(key, {}), said), said)
            self.webhook(merged)
            live.clear()
            live.update(merged)
            if live.get("spec") != before.get("spec") and key[0] in _SPEC_GENERATION:
                live["metadata"]["generation"] += 1
            self.touch(live)
        self._applied[key] = said
        return live

    def delete(self, kind: str, name: str, uid: str | None = None) -> None:
        """Delete an object at once."""
        live = self.objects.get((kind, name))
        if live is None:
            return
        if uid is not None and uid != live["metadata"]["uid"]:
            raise ConflictError(f"{kind} {name} is another one")
        del self.objects[kind, name]
        self._applied.pop((kind, name), None)


def merge(live: Any, said: Any) -> Any:
    """Merge objects; replace all other values."""
    if isinstance(live, dict) and isinstance(said, dict):
        return live | {name: merge(live.get(name), value) for name, value in said.items()}
    return copy.deepcopy(said)


def _without(live: Any, before: Any, said: Any) -> Any:
    """Return the live object without fields that were applied before and are not applied now."""
    if not (isinstance(live, dict) and isinstance(before, dict) and isinstance(said, dict)):
        return live
    gone = {name for name in before if name not in said}
    return {
        name: _without(value, before.get(name), said.get(name, {})) for name, value in live.items() if name not in gone
    }
