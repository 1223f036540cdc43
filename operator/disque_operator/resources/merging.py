"""Strategic merge: which lists of Kubernetes are maps, and how a patch is merged into a manifest.

Objects are merged field by field and lists with keys entry by entry; all other values are replaced. null removes a
field, but not a list with keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "port"),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
"""Lists that are maps, by field name: the fields that form the key of an entry, as far as the entry has them.

The order of such a list has no meaning. Server-side apply treats the same lists as maps.
"""


def key_of(field: str, entry: Any) -> str:
    """Return the key of an entry of the list `field`; empty if its entries have none."""
    if field not in KEYS or not isinstance(entry, dict):
        return ""
    found = [str(entry[name]) for name in KEYS[field] if name in entry]
    return " ".join([*found, entry.get("protocol", "TCP")] if found and field == "ports" else found)


def merge(base: Any, over: Any, field: str = "") -> Any:
    """Return `base` with the patch `over` applied; neither is changed. `field` is the name of the field they are in."""
    if isinstance(base, dict) and isinstance(over, dict):
        return _merge_objects(base, over)
    if isinstance(over, dict):
        return _merge_objects({}, over)
    if isinstance(base, list) and field in KEYS:
        return _merge_lists(base, over or [], field)
    return over


def _merge_objects(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in base.items() if name not in over}
    patched = {name: merge(base.get(name), value, name) for name, value in over.items()}
    # Keep the order of the base, so that a patch changes as little as possible of the text
    merged = kept | patched
    return {name: merged[name] for name in dict.fromkeys([*base, *over]) if merged.get(name) is not None}


def _merge_lists(base: list[Any], over: list[Any], field: str) -> list[Any]:
    entries = {key_of(field, entry): entry for entry in base}
    for entry in over:
        key = key_of(field, entry)
        entries[key] = merge(entries.get(key), entry)
    return list(entries.values())
